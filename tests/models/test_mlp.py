from __future__ import annotations

import pytest
import torch

from hookline.models import MODELS
from tests.problems import raises_problem


@pytest.mark.parametrize("size", [{"in_features": 64}, {"input_shape": [1, 8, 8]}])
def test_it_flattens_its_input(size):
    model = MODELS.build({"type": "mlp", "hidden": [16], "num_classes": 3, **size})
    assert model(torch.rand(2, 1, 8, 8)).shape == (2, 3)


def test_without_hidden_layers_it_is_linear():
    model = MODELS.build({"type": "mlp", "in_features": 4, "hidden": [], "num_classes": 3})
    assert sum(p.numel() for p in model.parameters()) == 4 * 3 + 3


def test_dropout_follows_every_hidden_layer():
    model = MODELS.build({"type": "mlp", "in_features": 4, "hidden": [8, 8], "dropout": 0.5})
    assert sum(isinstance(module, torch.nn.Dropout) for module in model.modules()) == 2


def test_an_unknown_size_is_rejected():
    with raises_problem(component="MLP", parameter="in_features"):
        MODELS.build("mlp")
