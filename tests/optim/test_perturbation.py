"""Weights that are moved along their gradients for a while."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.optim.perturbation import perturbed


def test_parameters_move_by_the_distance_and_return_even_after_an_error() -> None:
    first, second = nn.Parameter(torch.tensor([1.0])), nn.Parameter(torch.tensor([2.0]))
    unused = nn.Parameter(torch.tensor([5.0]))
    first.grad, second.grad = torch.tensor([3.0]), torch.tensor([4.0])

    def fail() -> None:
        with perturbed([first, second, unused], 0.5):
            moved = torch.cat([first, second, unused])
            assert torch.allclose(moved, torch.tensor([1.3, 2.4, 5.0]))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert [first.item(), second.item(), unused.item()] == [1.0, 2.0, 5.0]


def test_a_gradient_of_zero_moves_nothing() -> None:
    parameter = nn.Parameter(torch.ones(2))
    parameter.grad = torch.zeros(2)
    with perturbed([parameter], 0.5):
        assert torch.equal(parameter, torch.ones(2))
