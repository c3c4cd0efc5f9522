from __future__ import annotations

import pytest
import torch

from hookline.models import MODELS
from tests.problems import raises_problem


def test_the_built_in_models_are_registered():
    assert MODELS.names() == ["cnn", "detector", "mlp", "resnet", "segmenter"]


def test_any_module_goes_by_its_dotted_path():
    assert isinstance(
        MODELS.build({"type": "torch.nn.Linear", "in_features": 2, "out_features": 1}),
        torch.nn.Linear,
    )


def test_an_unknown_parameter_gets_the_nearest_name():
    with raises_problem(parameter="droput", nearest="dropout"):
        MODELS.build({"type": "cnn", "droput": 0.1})


@pytest.mark.parametrize("name", ["cnn", "resnet", "mlp"])
def test_a_model_learns_digits(name):
    from hookline.data.digits import Digits

    torch.manual_seed(0)
    data = Digits("train")
    size = {
        "mlp": {"input_shape": [1, 8, 8]},
        "cnn": {"in_channels": 1, "width": 8},
        "resnet": {"in_channels": 1, "width": 8, "blocks": 1},
    }
    model = MODELS.build({"type": name, "num_classes": 10, **size[name]})
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for step in range(60):
        images, targets = data.take(torch.arange(step * 64, step * 64 + 64) % len(data))
        loss = torch.nn.functional.cross_entropy(model(images), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    val = Digits("val")
    with torch.no_grad():
        assert (model(val.inputs).argmax(1) == val.targets).float().mean() > 0.85
