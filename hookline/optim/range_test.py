"""The learning rate range test: losses of a short training with a growing learning rate."""

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

from hookline.errors import ConfigError
from hookline.optim.modes import OptimizerModes

DIVERGENCE_FACTOR = 4.0  # The test ends when the mean loss exceeds the best one by this factor.
MEAN_DECAY = 0.9  # decay of the running mean of the loss
MIN_ITERATIONS = 10


class RangeTest(NamedTuple):
    """The tested rates and their losses, until the loss diverged."""

    rates: list[float]
    losses: list[float]

    def smoothed(self) -> list[float]:
        """Return the centered moving average of the losses, which does not lag behind."""
        count = len(self.losses)
        width = max(count // 20, 2)
        means = []
        for index in range(count):
            side = min(width, index, count - 1 - index)
            means.append(statistics.fmean(self.losses[index - side : index + side + 1]))
        return means

    def suggestion(self) -> float | None:
        """Return the rate at which the loss falls fastest before its minimum, if it falls."""
        curve = self.smoothed()
        lowest = min(range(len(curve)), key=curve.__getitem__, default=0)
        steepest = None
        steepest_slope = 0.0
        for index in range(1, lowest):
            slope = curve[index + 1] - curve[index - 1]
            if slope < steepest_slope:
                steepest = index
                steepest_slope = slope
        return None if steepest is None else self.rates[steepest]


def range_test(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    step: Callable[[Any], torch.Tensor],
    batches: Iterable[Any],
    start: float = 1e-7,
    end: float = 10.0,
    count: int = 100,
) -> RangeTest:
    """Train with growing rates, then restore the model, the optimizer and the random numbers.

    Args:
        model: The model.
        optimizer: The optimizer. Its groups keep the proportions of their rates.
        step: A function that returns the loss of a batch.
        batches: The batches, repeated if there are too few.
        start: The first rate.
        end: The last rate.
        count: The number of batches to train on.
    """
    if not 0 < start < end or count < MIN_ITERATIONS:
        message = f"needs 0 < start < end and at least {MIN_ITERATIONS} iterations"
        value = {"start": start, "end": end, "count": count}
        raise ConfigError(message, component="range test", value=value)
    result = RangeTest([], [])
    mean = 0.0
    best = math.inf
    with unchanged(model, optimizer), _same_random_numbers():
        model.train()
        OptimizerModes(optimizer).train()
        groups = optimizer.param_groups
        shares = [group["lr"] / groups[0]["lr"] for group in groups]
        for index, batch in zip(range(count), _endless(batches), strict=False):
            rate = start * (end / start) ** (index / (count - 1))
            for group, share in zip(groups, shares, strict=True):
                group["lr"] = rate * share
            loss = _train(optimizer, step, batch)
            mean = MEAN_DECAY * mean + (1 - MEAN_DECAY) * loss
            corrected = mean / (1 - MEAN_DECAY ** (index + 1))
            if not math.isfinite(loss) or corrected > DIVERGENCE_FACTOR * best:
                break
            best = min(best, corrected)
            result.rates.append(rate)
            result.losses.append(loss)
    return result


def _train(
    optimizer: torch.optim.Optimizer, step: Callable[[Any], torch.Tensor], batch: Any
) -> float:
    optimizer.zero_grad(set_to_none=True)
    loss = step(batch)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.item()


@contextmanager
def unchanged(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Restore weights, buffers, gradients, modes and the optimizer's state at the end."""
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
    """Restore the random number generators of Python, NumPy and torch at the end."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    try:
        with torch.random.fork_rng():
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)


def _endless(batches: Iterable[Any]) -> Iterator[Any]:
    """Repeat the batches. Raise ConfigError if there are none."""
    while True:
        empty = True
        for batch in batches:
            empty = False
            yield batch
        if empty:
            raise ConfigError("the loader has no batches", component="range test")
