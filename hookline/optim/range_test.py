"""The learning rate range test: the loss while the rate grows from far too small to far too large."""

from __future__ import annotations

import copy
import math
import random
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

DIVERGED = 4.0  # times the best loss
MEMORY = 0.9  # of the running mean that tells when the loss has diverged


class RangeTest(NamedTuple):
    """The rates that were tried and the loss at each, up to where it diverged."""

    rates: list[float]
    losses: list[float]

    def smoothed(self) -> list[float]:
        """The mean of each loss and its neighbours, as many on either side: it does not lag behind."""
        width, count = max(len(self.losses) // 20, 2), len(self.losses)
        sides = [min(width, index, count - 1 - index) for index in range(count)]
        return [statistics.fmean(self.losses[index - side : index + side + 1]) for index, side in enumerate(sides)]

    def suggestion(self) -> float | None:
        """The rate at which the loss falls fastest on its way to the minimum; None if it never falls."""
        curve = self.smoothed()
        lowest = min(range(len(curve)), key=curve.__getitem__, default=0)
        slopes = {index: curve[index + 1] - curve[index - 1] for index in range(1, lowest)}
        steepest = min(slopes, key=slopes.__getitem__, default=None)
        return None if steepest is None or slopes[steepest] >= 0 else self.rates[steepest]


def range_test(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    step: Callable[[Any], torch.Tensor],
    batches: Iterable[Any],
    start: float = 1e-7,
    end: float = 10.0,
    count: int = 100,
) -> RangeTest:
    """Train for `count` batches with rates growing from `start` to `end`; `step` gives the loss of a batch.

    Groups keep their rates' proportions. Model, optimizer and random numbers are as before when it returns.
    """
    if not 0 < start < end or count < 10:
        raise ValueError(f"a range test needs 0 < start < end and at least 10 iterations, got {start}, {end} and {count}")
    result = RangeTest([], [])
    mean, best = 0.0, math.inf
    with unchanged(model, optimizer), _same_random_numbers():
        model.train()
        groups = optimizer.param_groups
        shares = [group["lr"] / groups[0]["lr"] for group in groups]
        for index, batch in zip(range(count), _endless(batches), strict=False):
            rate = start * (end / start) ** (index / (count - 1))
            for group, share in zip(groups, shares, strict=True):
                group["lr"] = rate * share
            optimizer.zero_grad(set_to_none=True)
            loss = step(batch)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            value = loss.item()
            mean = MEMORY * mean + (1 - MEMORY) * value
            recent = mean / (1 - MEMORY ** (index + 1))
            if not math.isfinite(value) or recent > DIVERGED * best:
                break
            best = min(best, recent)
            result.rates.append(rate)
            result.losses.append(value)
    return result


@contextmanager
def unchanged(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Whatever is done inside, weights, buffers, gradients, modes and the optimizer's state are as before afterwards."""
    tensors = [*model.parameters(), *model.buffers()]
    values = [tensor.detach().clone() for tensor in tensors]
    gradients = [(param, param.grad) for param in model.parameters()]
    modes = [(module, module.training) for module in model.modules()]
    state = copy.deepcopy(optimizer.state_dict())
    optimizer.zero_grad(set_to_none=True)
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, value in zip(tensors, values, strict=True):
                tensor.copy_(value)
        for param, gradient in gradients:
            param.grad = gradient
        for module, training in modes:
            module.training = training
        optimizer.load_state_dict(state)


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


def _endless(batches: Iterable[Any]) -> Iterator[Any]:
    while True:
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            raise ValueError("a range test needs batches, and there are none")
