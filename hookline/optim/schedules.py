"""Schedules as pure functions of progress.

`initial` is the value before any schedule, `progress` the number of finished epochs or iterations,
and `end` their number in the whole run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

AnnealStrategy = Literal["cos", "linear"]
DecayShape = Literal["linear", "cosine", "sqrt"]
Warmup = Literal["constant", "linear", "exp"]


def step(
    initial: float,
    progress: int,
    steps: int | Sequence[int],
    gamma: float,
    minimum: float | None = None,
) -> float:
    """Multiply by `gamma` after every `steps` units of progress, or at each one of a list."""
    if isinstance(steps, int):
        passed = progress // steps
    else:
        passed = sum(progress >= milestone for milestone in steps)
    value = initial * gamma**passed
    if minimum is None:
        return value
    return max(value, minimum)


def exponential(initial: float, progress: int, gamma: float) -> float:
    """Multiply by `gamma` after every unit of progress."""
    return initial * gamma**progress


def poly(initial: float, progress: int, end: int, power: float, minimum: float) -> float:
    """Decay to `minimum` with the remaining fraction of the run, raised to `power`."""
    remaining = 1 - min(progress, end) / end
    return float((initial - minimum) * remaining**power + minimum)


def inverse(initial: float, progress: int, gamma: float, power: float) -> float:
    """Divide by `1 + gamma * progress`, raised to `power`."""
    return float(initial * (1 + gamma * progress) ** -power)


def cosine(start: float, target: float, fraction: float, weight: float = 1.0) -> float:
    """Follow half a cosine wave from `start` to `target`; `weight` scales its height."""
    return target + 0.5 * weight * (start - target) * (math.cos(math.pi * fraction) + 1)


def linear(start: float, target: float, fraction: float) -> float:
    """Follow a straight line from `start` to `target`."""
    return start + (target - start) * fraction


def anneal(strategy: AnnealStrategy, start: float, target: float, fraction: float) -> float:
    """Follow a cosine wave or a straight line from `start` to `target`."""
    if strategy == "cos":
        return cosine(start, target, fraction)
    return linear(start, target, fraction)


def flat_cosine(
    initial: float, target: float, progress: int, end: int, start_percent: float
) -> float:
    """Stay at `initial` for the first part of the run, then follow a cosine wave to `target`."""
    start = round(end * start_percent)
    if progress < start or start >= end:
        return initial
    return cosine(initial, target, min((progress - start) / (end - start), 1.0))


def stable_decay(
    initial: float, target: float, progress: int, end: int, decay_ratio: float, shape: DecayShape
) -> float:
    """Stay at `initial`, then move to `target` in the last part of the run.

    Args:
        decay_ratio: The part of the run in which the value moves.
        shape: The path: a straight line, half a cosine wave, or `1 - sqrt` of the way.
    """
    start = end - round(end * decay_ratio)
    if progress < start or start >= end:
        return initial
    fraction = min((progress - start) / (end - start), 1.0)
    if shape == "cosine":
        return cosine(initial, target, fraction)
    if shape == "sqrt":
        fraction = math.sqrt(fraction)
    return linear(initial, target, fraction)


def locate_period(progress: int, periods: Sequence[int]) -> tuple[int, int]:
    """Return the index of the current period and the progress within it.

    After the last period, the progress within it is its length or more.
    """
    start = 0
    for index, period in enumerate(periods[:-1]):
        if progress < start + period:
            return index, progress - start
        start += period
    return len(periods) - 1, progress - start


def cosine_restart(
    initial: float, target: float, progress: int, periods: Sequence[int], weights: Sequence[float]
) -> float:
    """Follow one cosine wave per period, with its height scaled by the period's weight."""
    index, position = locate_period(progress, periods)
    fraction = min(position / periods[index], 1.0)
    return cosine(initial, target, fraction, weights[index])


def cyclic(
    initial: float,
    progress: int,
    end: int,
    ratios: Sequence[float],
    times: int,
    up: float,
    gamma: float = 1.0,
    strategy: AnnealStrategy = "cos",
) -> float:
    """Run through `times` cycles of two phases.

    Args:
        ratios: The target of each phase as a fraction of `initial`.
        up: The length of the first phase as a fraction of the cycle.
        gamma: The factor by which every peak comes closer to `initial` than the one before it.
    """
    length = max(end // times, 1)
    cycle, position = divmod(progress, length)
    turn = int(up * length)
    peak = initial * (1 + (ratios[0] - 1) * gamma**cycle)
    if position < turn:
        return anneal(strategy, initial, peak, position / turn)
    return anneal(strategy, peak, initial * ratios[1], (position - turn) / (length - turn))


class Phase(NamedTuple):
    """A part of a schedule, from `start` to `target`, that ends at progress `end`."""

    end: float
    start: float
    target: float


def one_cycle(
    low: float,
    high: float,
    final: float,
    progress: int,
    end: int,
    pct_start: float,
    strategy: AnnealStrategy = "cos",
    three_phase: bool = False,
) -> float:
    """Rise from `low` to `high`, then fall to `final`; with three phases, fall to `low` first.

    The last phase ends at `end - 1`. Later progress extrapolates it, as in torch.
    """
    phases = [Phase(pct_start * end - 1, low, high)]
    if three_phase:
        phases.append(Phase(2 * pct_start * end - 2, high, low))
        phases.append(Phase(end - 1, low, final))
    else:
        phases.append(Phase(end - 1, high, final))
    begin = 0.0
    while len(phases) > 1 and progress > phases[0].end:
        begin = phases.pop(0).end
    phase = phases[0]
    length = phase.end - begin
    fraction = (progress - begin) / length if length else 1.0
    return anneal(strategy, phase.start, phase.target, fraction)


def warmup_factor(kind: Warmup, progress: int, length: int, ratio: float) -> float:
    """Return the factor of a warm-up that starts at `ratio` and lasts `length` iterations."""
    if kind == "constant":
        return ratio
    if kind == "linear":
        return 1 - (1 - progress / length) * (1 - ratio)
    return float(ratio ** (1 - progress / length))
