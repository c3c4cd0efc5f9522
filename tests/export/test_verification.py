"""A drift of an exported file is found, with the layer where it begins."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.export import ExportError, export_model, verify_onnx, verify_program
from hookline.export.verification import verify_weights
from hookline.models import MODELS

pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    torch.manual_seed(0)
    model = MODELS.build({"type": "cnn", "width": 4}).eval()
    inputs = torch.randn(4, 1, 8, 8)
    return model, inputs, export_model(model, inputs, tmp_path_factory.mktemp("export"))


def norms(model: nn.Module) -> list[str]:
    return [name for name, each in model.named_modules() if isinstance(each, nn.BatchNorm2d)]


@pytest.mark.parametrize("index", [0, -1])
def test_a_drift_of_batch_norm_is_located(exported, index):
    model, inputs, files = exported
    assert verify_onnx(files["onnx"], model, inputs) <= 1e-5
    name = norms(model)[index]
    variance = model.get_submodule(name).running_var
    before = variance.clone()
    variance.mul_(1.5)
    try:
        with pytest.raises(ExportError) as caught:
            verify_onnx(files["onnx"], model, inputs)
        with pytest.raises(ExportError):
            verify_program(files["pt2"], model, inputs)
        with pytest.raises(ExportError) as weights:
            verify_weights(files["safetensors"], model, inputs, 0.0)
    finally:
        variance.copy_(before)
    assert caught.value.layer == weights.value.layer == name


def test_a_model_in_training_mode_drifts_at_its_first_batch_norm(exported):
    model, inputs, files = exported
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.train()
    try:
        with pytest.raises(ExportError) as caught:
            verify_onnx(files["onnx"], model, inputs)
    finally:
        model.load_state_dict(state)
        model.eval()
    assert caught.value.layer == norms(model)[0]


def test_outputs_of_another_shape_are_an_error(exported):
    _, inputs, files = exported
    other = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    with pytest.raises(ExportError):
        verify_program(files["pt2"], other, inputs)
