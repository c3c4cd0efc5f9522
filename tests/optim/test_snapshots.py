"""Copies of weights and gradients, to see whether they are still the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

from hookline.optim.snapshots import GradientSnapshot


def clear(parameter: nn.Parameter) -> None:
    parameter.grad = None


@pytest.mark.parametrize(
    ("change", "is_current"),
    [
        (lambda parameter: None, True),
        (lambda parameter: parameter.data.add_(1), False),
        (lambda parameter: parameter.grad.zero_(), False),
        (clear, False),
    ],
)
def test_a_change_of_weights_or_gradients_is_noticed(
    change: Callable[[nn.Parameter], object], is_current: bool
) -> None:
    used, unused = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))
    used.grad = torch.ones(2)
    snapshot = GradientSnapshot([used, unused])
    change(used)
    assert snapshot.is_current() == is_current


def test_a_gradient_that_appears_is_noticed() -> None:
    parameter = nn.Parameter(torch.ones(2))
    snapshot = GradientSnapshot([parameter])
    parameter.grad = torch.zeros(2)
    assert not snapshot.is_current()
