"""Exported files of the example models compute what the models compute."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from examples.text import LENGTH, LETTERS, Writer
from hookline.errors import ConfigError
from hookline.export import FORMATS, ExportError, OnnxModel, export_model
from hookline.models import MODELS

pytest.importorskip("onnxruntime")


def digits() -> tuple[nn.Module, Tensor]:
    return MODELS.build({"type": "cnn", "width": 4}), torch.randn(5, 1, 8, 8)


def text() -> tuple[nn.Module, Tensor]:
    return Writer(width=16, layers=1), torch.randint(len(LETTERS), (3, LENGTH))


def segmentation() -> tuple[nn.Module, Tensor]:
    return MODELS.build({"type": "segmenter", "width": 4}), torch.randn(3, 3, 16, 16)


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


def test_a_model_that_cannot_be_traced_is_an_error_and_leaves_the_earlier_file(tmp_path):
    class Branches(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if float(x.sum()) > 0 else -x

    (tmp_path / "model.pt2").write_text("earlier")
    with pytest.raises(ExportError):
        export_model(Branches(), torch.randn(2, 4), tmp_path, ["pt2"])
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt2"]
    assert (tmp_path / "model.pt2").read_text() == "earlier"
