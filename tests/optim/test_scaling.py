"""Loss scaling on the CPU."""

from __future__ import annotations

import pytest
import torch

from hookline.errors import ConfigError
from hookline.optim.scaling import LossScaler, check_loss_scale


def stepped(scaler: LossScaler, gradient: float) -> bool:
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    scaler.attach(optimizer)
    scaler.scale((parameter * gradient).sum()).backward()
    scaler.unscale(optimizer)
    return scaler.step(optimizer)


def test_a_step_with_an_infinite_gradient_is_skipped():
    scaler = LossScaler("cpu", {"init_scale": 8.0})
    assert stepped(scaler, 1.0)
    assert not stepped(scaler, float("inf"))
    assert scaler.get_scale() == 4.0


def test_a_fixed_scale_never_changes():
    scaler = LossScaler("cpu", 16.0)
    assert not stepped(scaler, float("inf"))
    assert scaler.get_scale() == 16.0
    scaler.load_state_dict(LossScaler("cpu", {"init_scale": 8.0}).state_dict())
    assert scaler.get_scale() == 16.0


def test_a_dynamic_scale_is_restored():
    scaler = LossScaler("cpu")
    scaler.load_state_dict(LossScaler("cpu", {"init_scale": 8.0}).state_dict())
    assert scaler.get_scale() == 8.0


@pytest.mark.parametrize("loss_scale", ["static", 0, -1.0, {"init_scal": 8.0}])
def test_a_wrong_loss_scale_is_refused(loss_scale):
    with pytest.raises(ConfigError) as caught:
        check_loss_scale("Hook", loss_scale)
    assert (caught.value.component, caught.value.parameter) == ("Hook", "loss_scale")


@pytest.mark.parametrize("loss_scale", ["dynamic", 1, 512.0, {"init_scale": 8.0}])
def test_a_valid_loss_scale_is_accepted(loss_scale):
    check_loss_scale("Hook", loss_scale)
