"""Gradient clipping."""

from __future__ import annotations

import pytest
import torch

from hookline.errors import ConfigError
from hookline.optim.clipping import make_clip


def parameters() -> list[torch.Tensor]:
    parameter = torch.nn.Parameter(torch.zeros(2))
    parameter.grad = torch.tensor([3.0, -4.0])
    return [parameter, torch.nn.Parameter(torch.zeros(1))]


def test_clipping_by_norm_returns_the_norm_before_it():
    params = parameters()
    assert make_clip("Hook", {"max_norm": 1.0})(params) == 5.0
    assert params[0].grad.norm() == pytest.approx(1.0, rel=1e-4)


def test_clipping_by_value_returns_the_norm_before_it():
    params = parameters()
    assert make_clip("Hook", {"clip_value": 3.5, "norm_type": 1})(params) == 7.0
    assert params[0].grad.tolist() == [3.0, -3.5]


@pytest.mark.parametrize(
    ("config", "nearest"),
    [
        ({"max_nrm": 1.0}, "max_norm"),
        ({}, None),
        ({"max_norm": 1.0, "clip_value": 1.0}, None),
        ({"max_norm": 0}, None),
        ({"clip_value": "x"}, None),
    ],
)
def test_a_wrong_config_is_refused(config, nearest):
    with pytest.raises(ConfigError) as caught:
        make_clip("Hook", config)
    assert (caught.value.component, caught.value.parameter) == ("Hook", "grad_clip")
    assert caught.value.suggestion.nearest == nearest
