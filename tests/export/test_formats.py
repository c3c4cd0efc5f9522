"""Exported files of the example models compute what the models compute."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from examples.text import LENGTH, LETTERS, Writer
from hookline.errors import ConfigError
from hookline.export import FORMATS, ExportError, OnnxModel, export_model
from hookline.export.formats import VERIFIERS, WRITERS
from hookline.models import MODELS

pytest.importorskip("onnxruntime")


def digits() -> tuple[nn.Module, Tensor]:
    return MODELS.build({"type": "cnn", "width": 4}), torch.randn(5, 1, 8, 8)


def text() -> tuple[nn.Module, Tensor]:
    return Writer(width=16, layers=1), torch.randint(len(LETTERS), (3, LENGTH))


def segmentation() -> tuple[nn.Module, Tensor]:
    return MODELS.build({"type": "segmenter", "width": 4}), torch.randn(3, 3, 16, 16)


class Reader(nn.Module):
    """A model of tokens that takes its inputs by name, as those of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        weights = attention_mask.unsqueeze(2).float()
        hidden = self.embedding(input_ids) * weights
        return {"hidden": hidden, "logits": self.head(hidden.sum(1) / weights.sum(1))}


def tokens(rows: int, length: int) -> dict[str, Tensor]:
    mask = torch.ones(rows, length, dtype=torch.long)
    mask[0, length // 2 + 1 :] = 0
    return {"input_ids": torch.randint(10, (rows, length)), "attention_mask": mask}


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3])
def test_a_model_with_named_inputs_is_exported_with_a_dynamic_length(tmp_path, rows):
    torch.manual_seed(0)
    model = Reader()
    files = export_model(model, tokens(rows, 6), tmp_path)
    more = tokens(5, 9)
    expected = model(**more)
    program = torch.export.load(files["pt2"]).module()
    assert torch.allclose(program(**more)["logits"], expected["logits"], atol=1e-5)
    hidden, logits = OnnxModel(files["onnx"])(**more)
    assert torch.allclose(hidden, expected["hidden"], atol=1e-5)
    assert torch.allclose(logits, expected["logits"], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("example", [digits, text, segmentation])
def test_all_formats_of_the_examples_are_verified_with_a_dynamic_batch(tmp_path, example):
    torch.manual_seed(0)
    model, inputs = example()
    model.train()
    files = export_model(model, inputs, tmp_path)
    assert sorted(files) == sorted(FORMATS)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "model.onnx",
        "model.pt2",
        "model.safetensors",
    ]
    assert model.training, "the model is left in its mode"
    model.eval()
    more = torch.cat([inputs, inputs])
    with torch.no_grad():
        assert torch.allclose(OnnxModel(files["onnx"])(more), model(more), atol=1e-5)


def test_a_single_sample_is_enough(tmp_path):
    files = export_model(nn.Linear(4, 2), torch.randn(1, 4), tmp_path, ["pt2"])
    assert torch.export.load(files["pt2"]).module()(torch.randn(7, 4)).shape == (7, 2)


def test_an_unknown_format_is_rejected(tmp_path):
    with pytest.raises(ConfigError) as caught:
        export_model(nn.Linear(4, 2), torch.randn(2, 4), tmp_path, ["onx"])
    assert caught.value.parameter == "formats"


class Branching(Reader):
    """A model in whose code the length is a constant."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        return super().forward(input_ids // input_ids.shape[1].__index__(), attention_mask)


class Positioned(Reader):
    """A model that takes one length only."""

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> dict[str, Tensor]:
        return super().forward(input_ids * (torch.arange(6) < 6), attention_mask)


def test_a_length_that_becomes_a_constant_is_an_error(tmp_path):
    with pytest.raises(ExportError):
        export_model(Branching(), tokens(3, 6), tmp_path, ["pt2"])
    assert not list(tmp_path.iterdir())


def test_a_model_of_one_length_is_exported(tmp_path):
    files = export_model(Positioned(), tokens(3, 6), tmp_path, ["pt2"])
    program = torch.export.load(files["pt2"]).module()
    assert program(**tokens(5, 6))["logits"].shape == (5, 2)


def test_a_model_that_cannot_be_traced_is_an_error_and_leaves_the_earlier_file(tmp_path):
    class Branches(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if float(x.sum()) > 0 else -x

    (tmp_path / "model.pt2").write_text("earlier")
    with pytest.raises(ExportError):
        export_model(Branches(), torch.randn(2, 4), tmp_path, ["pt2"])
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt2"]
    assert (tmp_path / "model.pt2").read_text() == "earlier"


def write_two_files(model: nn.Module, inputs: Tensor, path: Path) -> None:
    """Write as torch.onnx does with more than 2 GB: the weights are in a file beside."""
    path.write_text(path.name)
    path.with_name(f"{path.name}.data").write_text("weights")


def test_all_files_of_a_format_are_moved_together_and_under_their_names(tmp_path, monkeypatch):
    monkeypatch.setitem(WRITERS, "onnx", write_two_files)
    monkeypatch.setitem(VERIFIERS, "onnx", lambda *arguments: None)
    (tmp_path / ".partial").mkdir()
    (tmp_path / ".partial" / "rest").write_text("of a killed process")
    files = export_model(nn.Linear(4, 2), torch.randn(2, 4), tmp_path, ["onnx"])
    assert files["onnx"].read_text() == "model.onnx"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]


def test_a_drift_names_the_file_as_it_would_be_called(tmp_path, monkeypatch):
    def write_other(model: nn.Module, inputs: Tensor, path: Path) -> None:
        write_program(nn.Linear(4, 2), inputs, path)

    write_program = WRITERS["pt2"]
    monkeypatch.setitem(WRITERS, "pt2", write_other)
    with pytest.raises(ExportError) as caught:
        export_model(nn.Linear(4, 2), torch.randn(2, 4), tmp_path, ["pt2"])
    assert caught.value.file == "model.pt2"
    assert not list(tmp_path.iterdir())
