"""A limit for the memory of activations."""

from __future__ import annotations

from itertools import chain

import pytest
import torch
from torch import nn

from hookline.optim.activations import MB, activation_limit


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(10, 100), nn.ReLU(), nn.BatchNorm1d(100), nn.Linear(100, 10))


def run(model: nn.Module, samples: int, limit_bytes: float | None) -> torch.Tensor:
    limit = None if limit_bytes is None else limit_bytes / MB
    weights = chain(model.parameters(), model.buffers())
    with activation_limit(limit, weights):
        output: torch.Tensor = model(torch.ones(64, 10)[:samples])
    return output


def fits(samples: int, limit_bytes: float) -> bool:
    try:
        run(network(), samples, limit_bytes)
    except torch.OutOfMemoryError:
        return False
    return True


def test_exactly_the_tensors_for_the_backward_pass_count() -> None:
    # Per sample: the input, the output of ReLU (kept by two layers) and of batch norm. Batch norm
    # also keeps mean and variance of the batch.
    needed = 32 * (10 + 100 + 100) * 4 + 2 * 100 * 4
    assert fits(32, needed)
    assert not fits(32, needed - 1)
    assert not fits(33, needed)


def test_gradients_are_those_without_a_limit() -> None:
    limited, plain = network(), network()
    run(limited, 32, 10**6).square().sum().backward()
    run(plain, 32, None).square().sum().backward()
    for one, other in zip(limited.parameters(), plain.parameters(), strict=True):
        assert one.grad is not None
        assert torch.equal(one.grad, other.grad)  # type: ignore[arg-type]


def test_a_tensor_that_is_changed_before_the_backward_pass_is_an_error() -> None:
    inputs = torch.ones(3, requires_grad=True)
    with activation_limit(1.0, []):
        result = inputs.exp()
    result.add_(1)
    with pytest.raises(RuntimeError):
        result.sum().backward()
