"""The export of a model at the end of a run."""

from __future__ import annotations

import pytest
import safetensors.torch
import torch
from torch import nn

from hookline.errors import ConfigError
from hookline.export import ExportError, OnnxModel
from hookline.hooks import CheckpointHook, EvalHook, ExportHook
from hookline.metrics import build_metrics
from tests.contracts.training import Scripted
from tests.helpers import batches, make_runner
from tests.problems import logged


def train(folder, *hooks, scores=(0.9, 0.1), **parts):
    metrics = {"accuracy": Scripted(*scores)}
    parts = {"val_loader": batches(1, seed=1), "metrics": metrics, **parts}
    return make_runner(folder, *hooks, EvalHook(), **parts).train()


def test_the_best_weights_are_exported(tmp_path):
    train(tmp_path, CheckpointHook(), ExportHook(formats=["safetensors"]))
    found = safetensors.torch.load_file(tmp_path / "export" / "model.safetensors")
    best = torch.load(tmp_path / "best_accuracy.pth", weights_only=True)
    last = torch.load(tmp_path / "last.pth", weights_only=True)
    assert all(torch.equal(found[name], value) for name, value in best["state_dict"].items())
    assert not torch.equal(found["0.weight"], last["state_dict"]["0.weight"])
    assert "best_accuracy.pth" in (tmp_path / "export" / "README.md").read_text()


def test_the_best_of_several_kept_checkpoints_is_exported(tmp_path):
    hooks = [CheckpointHook(keep_best=2), ExportHook(formats=["safetensors"])]
    train(tmp_path, *hooks, scores=(0.9, 0.8))
    assert list(tmp_path.glob("best_accuracy_0.8_*.pth"))
    assert "best_accuracy.pth" in (tmp_path / "export" / "README.md").read_text()


def test_an_onnx_file_computes_the_outputs_of_the_model(tmp_path):
    pytest.importorskip("onnxruntime")
    runner = train(tmp_path, CheckpointHook(), ExportHook(formats=["onnx"], checkpoint="last"))
    inputs, _ = batches(1, seed=5)[0]
    with torch.no_grad():
        expected = runner.model(inputs)
    found = OnnxModel(tmp_path / "export" / "model.onnx")(inputs)
    assert torch.allclose(found, expected, atol=1e-5)


def test_a_metric_that_differs_is_an_error(tmp_path):
    pytest.importorskip("onnxruntime")
    with pytest.raises(ExportError):
        train(tmp_path, CheckpointHook(), ExportHook(formats=["onnx"]), scores=(0.9, 0.1, 0.2, 0.3))


def test_a_metric_that_is_not_a_number_for_both_is_no_difference(tmp_path):
    pytest.importorskip("onnxruntime")
    train(tmp_path, CheckpointHook(), ExportHook(formats=["onnx"]), scores=(float("nan"),))
    assert (tmp_path / "export" / "model.onnx").is_file()


class Judge(nn.Linear):
    """A model that takes a batch by name and computes its loss."""

    def forward(self, inputs, labels=None):
        logits = super().forward(inputs)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits} if loss is not None else {"logits": logits}


def test_a_model_that_computes_its_loss_is_exported_with_its_metrics(tmp_path):
    pytest.importorskip("onnxruntime")
    named = [{"inputs": inputs, "labels": labels} for inputs, labels in batches()]
    parts = {"model": Judge(6, 3), "loss_fn": None, "train_loader": named, "val_loader": named[:1]}
    metrics = build_metrics(["accuracy"])
    runner = train(
        tmp_path, CheckpointHook(), ExportHook(formats=["onnx"]), metrics=metrics, **parts
    )
    assert runner.metrics["accuracy"] > 0
    inputs = named[1]["inputs"]
    best = torch.load(tmp_path / "best_accuracy.pth", weights_only=True)
    runner.model.load_state_dict(best["state_dict"])
    with torch.no_grad():
        expected = runner.model(inputs)["logits"]
    found = OnnxModel(tmp_path / "export" / "model.onnx")(inputs=inputs)
    assert torch.allclose(found, expected, atol=1e-5)
    assert "`inputs` float32 [N, 6]" in (tmp_path / "export" / "README.md").read_text()


def test_a_run_without_checkpoints_exports_nothing(tmp_path, caplog):
    train(tmp_path, ExportHook(formats=["safetensors"]))
    assert len(logged(caplog, "ExportHook", "no checkpoint")) == 1
    assert not (tmp_path / "export").exists()


def test_an_unknown_format_is_rejected():
    with pytest.raises(ConfigError) as caught:
        ExportHook(formats=["onx"])
    assert caught.value.parameter == "formats"
