"""Class activation maps: their values, pictures of them, and models that have none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from hookline.errors import ConfigError
from hookline.hooks import CAMHook, EvalHook
from hookline.visual import attribution
from hookline.visual.attribution import grad_cam
from tests.helpers import make_runner
from tests.visual.picture_parts import Records, conv_model, images


def reference_grad_cam(
    model: nn.Sequential, index: int, inputs: torch.Tensor, classes: torch.Tensor
) -> torch.Tensor:
    """Compute Grad-CAM (Selvaraju et al.): ReLU of channels weighted by their mean gradient."""
    activations = model[: index + 1](inputs).detach().requires_grad_()
    scores = model[index + 1 :](activations.clone())
    scores[torch.arange(len(inputs)), classes].sum().backward()
    weights = activations.grad.mean((2, 3), keepdim=True)
    return (weights * activations).sum(1).relu().detach()


@pytest.mark.parametrize("index", [0, 3])
def test_grad_cam_equals_an_independent_computation(index):
    model = conv_model().eval()
    inputs, classes = images()[0]
    result = grad_cam(model, model[index], inputs.clone().requires_grad_(), classes)
    torch.testing.assert_close(
        result, reference_grad_cam(conv_model().eval(), index, inputs, classes)
    )


def test_training_and_validation_are_drawn(tmp_path):
    records = Records()
    hooks = CAMHook(interval=4, max_samples=2), EvalHook(interval=1), records
    make_runner(
        tmp_path, *hooks, model=conv_model(), train_loader=images(), val_loader=images(1)
    ).train()
    assert records.names() == [
        ("CAMHook/train", 4),
        ("CAMHook/val", 4),
        ("CAMHook/train", 8),
        ("CAMHook/val", 8),
    ]
    assert records.records[0].value.dtype == np.uint8
    assert len(list(tmp_path.rglob("*.png"))) == 4


def test_the_heat_is_where_the_model_looks():
    model = nn.Sequential(
        nn.Conv2d(1, 1, 3, padding=1, bias=False), nn.Flatten(), nn.Linear(64, 2, bias=False)
    )
    with torch.no_grad():
        model[0].weight.fill_(1.0)
        model[2].weight.copy_(torch.stack([torch.ones(64), -torch.ones(64)]))
    inputs = torch.zeros(1, 1, 8, 8)
    inputs[0, 0, 1, 6] = 1.0
    heat = grad_cam(model, model[0], inputs.requires_grad_(), torch.tensor([0]))[0]
    assert heat[0:3, 5:8].min() > 0
    assert heat[4:, :4].max() == 0


def test_a_missing_layer_is_an_error_before_the_first_batch(tmp_path):
    hook = CAMHook(layer="features.x")
    runner = make_runner(tmp_path, hook, model=conv_model(), train_loader=images())
    with pytest.raises(ConfigError) as caught:
        runner.train()
    assert (caught.value.component, caught.value.parameter) == ("CAMHook", "layer")
    assert caught.value.value == "features.x"


@pytest.mark.parametrize(("layer", "name"), [("0", "0"), ("[0-3]", "3"), (None, "3")])
def test_the_layer_is_a_name_or_the_last_match_of_a_pattern(layer, name):
    model = conv_model()
    inputs, classes = images()[0]
    maps = CAMHook(layer=layer).explain(model, inputs.requires_grad_(), classes)
    assert list(maps) == [f"Grad-CAM of {name}"]


class TakesADict(nn.Module):
    """A model whose forward takes the whole batch."""

    def __init__(self):
        super().__init__()
        self.body = conv_model()

    def forward(self, batch):
        return self.body(batch.get("image"))

    def train_step(self, batch):
        return {"loss": nn.functional.cross_entropy(self(batch), batch["label"])}


def test_an_unexpected_error_is_logged_once_with_its_traceback_and_training_continues(
    tmp_path, caplog
):
    data = [{"image": inputs, "label": targets} for inputs, targets in images()]
    runner = make_runner(tmp_path, CAMHook(interval=1), model=TakesADict(), train_loader=data)
    runner.train()
    assert runner.iter == 8
    (record,) = [
        record for record in caplog.records if "cannot explain this model" in record.message
    ]
    assert record.exc_info[0] is AttributeError
    assert all(module.training for module in runner.model.modules())


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (
            lambda: nn.Sequential(nn.Flatten(), nn.Linear(64, 3)),
            images(),
            "no convolution",
        ),
        (lambda: nn.Linear(6, 3), None, "got [8, 6]"),
    ],
)
def test_a_model_that_cannot_be_explained_is_reported_once_and_training_continues(
    tmp_path, caplog, model, data, message
):
    parts = {} if data is None else {"train_loader": data}
    runner = make_runner(tmp_path, CAMHook(interval=1), model=model(), **parts)
    runner.train()
    assert runner.iter == 8
    assert len([text for text in caplog.messages if message in text]) == 1


def test_without_captum_the_run_does_not_begin(tmp_path, monkeypatch):
    monkeypatch.setattr(attribution.importlib.util, "find_spec", lambda name: None)
    runner = make_runner(tmp_path, CAMHook(), model=conv_model(), train_loader=images())
    with pytest.raises(ConfigError, match=r"hookline\[captum\]") as caught:
        runner.train()
    assert caught.value.component == "CAMHook"
