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

MIN_ITERATIONS = 10
SMOOTHING = 0.3  # standard deviation of the smoothing, in decades of the rate
FALL_SHARE = 0.95  # of the whole fall of the loss, which is over at the suggested rate
MARGIN = 2.0  # at least, between the suggestion and the rate of the lowest loss
COUNT = 200  # batches: with fewer, a model has little time to learn before a rate is too high
START_SHARE = 0.1  # of the points, whose rates are too small to change the loss
NOISE_SCALE = 1.5  # from a median absolute deviation to a standard deviation, about
DIVERGENCE_FACTOR = 3.0  # The test ends when the loss rises by this multiple of its fall.
MEDIAN_WIDTH = 5  # points; a single outlier has no effect


class RangeTest(NamedTuple):
    """The tested rates and their losses, until the loss diverged."""

    rates: list[float]
    losses: list[float]

    def smoothed(self) -> list[float]:
        """Return the losses without outliers, smoothed over 0.3 decades of the rate.

        They are cut above the start, so that a sudden divergence does not reach far to its left.
        """
        medians = _running_medians(self.losses)
        if len(medians) < 2:
            return medians
        start = _level_at_start(medians)
        limit = start + (start - min(medians))
        medians = [min(each, limit) for each in medians]
        spacing = math.log10(self.rates[-1] / self.rates[0]) / (len(self.rates) - 1)
        if spacing <= 0:
            return medians
        deviation = SMOOTHING / spacing  # in points
        reach = math.ceil(3 * deviation)
        curve = []
        for index in range(len(medians)):
            near = range(max(0, index - reach), min(len(medians), index + reach + 1))
            weights = [math.exp(-(((other - index) / deviation) ** 2) / 2) for other in near]
            total = sum(
                weight * medians[other] for weight, other in zip(weights, near, strict=True)
            )
            curve.append(total / sum(weights))
        return curve

    def suggestion(self) -> float | None:
        """Return the rate at which 95 % of the fall of the loss is over; None if it never falls.

        The fall begins at the level of the first points, and ends at the lowest point of the
        smoothed curve. Half the rate of that point is the limit, because higher ones soon diverge.
        The steepest point would often be too low a rate, and noise displaces it:
        `benchmarks/lr_finder.py` compares suggestions with a grid.
        """
        curve = self.smoothed()
        lowest = min(range(len(curve)), key=curve.__getitem__, default=0)
        if lowest == 0:
            return None
        start = _level_at_start(curve)
        fall = start - curve[lowest]
        if fall <= self._noise(curve, lowest):
            return None
        index = lowest
        while index > 0 and curve[index - 1] <= start - FALL_SHARE * fall:
            index -= 1
        return min(self.rates[index], max(self.rates[lowest] / MARGIN, self.rates[0]))

    def _noise(self, curve: list[float], end: int) -> float:
        """Return about the standard deviation of the losses from the curve."""
        distances = [abs(self.losses[index] - curve[index]) for index in range(end)]
        return NOISE_SCALE * statistics.median(distances)


def range_test(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    step: Callable[[Any], torch.Tensor],
    batches: Iterable[Any],
    start: float = 1e-7,
    end: float = 10.0,
    count: int = COUNT,
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
            if not math.isfinite(loss):
                break
            result.rates.append(rate)
            result.losses.append(loss)
            if has_diverged(result.losses):
                break
    return result


def has_diverged(losses: list[float]) -> bool:
    """Return whether the loss has risen far above its lowest level. One outlier does not count."""
    if len(losses) < 2 * MEDIAN_WIDTH:
        return False
    levels = _running_medians(losses)
    lowest = min(levels)
    fall = max(levels[0] - lowest, abs(lowest))
    return levels[-1] > lowest + DIVERGENCE_FACTOR * fall


def _level_at_start(values: list[float]) -> float:
    return statistics.median(values[: max(1, int(len(values) * START_SHARE))])


def _running_medians(values: list[float]) -> list[float]:
    side = MEDIAN_WIDTH // 2
    medians = []
    for index in range(len(values)):
        medians.append(statistics.median(values[max(0, index - side) : index + side + 1]))
    return medians


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
