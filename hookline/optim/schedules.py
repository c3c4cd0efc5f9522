"""Schedules as pure functions of progress: where the run is, and where it ends, give the value. Nothing is remembered."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Literal

Anneal = Literal["cos", "linear"]
Warmup = Literal["constant", "linear", "exp"]


def step(base: float, at: int, steps: int | Sequence[int], gamma: float, least: float | None = None) -> float:
    """`base` times `gamma` for every step passed, each `steps` long or at the given places; never below `least`."""
    passed = at // steps if isinstance(steps, int) else sum(at >= place for place in steps)
    value = base * gamma**passed
    return value if least is None else max(value, least)


def exponential(base: float, at: int, gamma: float) -> float:
    return base * gamma**at


def poly(base: float, at: int, end: int, power: float, least: float) -> float:
    return float((base - least) * (1 - min(at, end) / end) ** power + least)


def inverse(base: float, at: int, gamma: float, power: float) -> float:
    return float(base * (1 + gamma * at) ** -power)


def cosine(start: float, target: float, fraction: float, weight: float = 1.0) -> float:
    """Half a cosine wave from `start` to `target`; `weight` stretches its height."""
    return target + 0.5 * weight * (start - target) * (math.cos(math.pi * fraction) + 1)


def linear(start: float, target: float, fraction: float) -> float:
    return start + (target - start) * fraction


def annealed(how: Anneal, start: float, target: float, fraction: float) -> float:
    return cosine(start, target, fraction) if how == "cos" else linear(start, target, fraction)


def flat_cosine(base: float, target: float, at: int, end: int, start_percent: float) -> float:
    """`base` for the first part of the run, then half a cosine wave to `target`."""
    start = round(end * start_percent)
    return base if at < start or start >= end else cosine(base, target, min((at - start) / (end - start), 1.0))


def cosine_restart(base: float, target: float, at: int, periods: Sequence[int], weights: Sequence[float]) -> float:
    """A cosine wave for each period, its height times the period's weight; after the last one its end."""
    ends = list(accumulate(periods))
    index = next((index for index, end in enumerate(ends) if at < end), len(ends) - 1)
    fraction = min((at - ends[index] + periods[index]) / periods[index], 1.0)
    return cosine(base, target, fraction, weights[index])


def cyclic(
    base: float, at: int, end: int, ratios: Sequence[float], times: int, up: float, gamma: float = 1.0, anneal: Anneal = "cos"
) -> float:
    """`times` cycles: to `base * ratios[0]` in the part `up` of a cycle, then to `base * ratios[1]`.

    `gamma` brings the peak of each cycle closer to `base` than that of the one before.
    """
    length = max(end // times, 1)
    cycle, position = divmod(at, length)
    turn = int(up * length)
    peak = base * (1 + (ratios[0] - 1) * gamma**cycle)
    if position < turn:
        return annealed(anneal, base, peak, position / turn)
    return annealed(anneal, peak, base * ratios[1], (position - turn) / (length - turn))


def one_cycle(
    low: float, high: float, final: float, at: int, end: int, pct_start: float, anneal: Anneal = "cos", three_phase: bool = False
) -> float:
    """From `low` to `high` in the first part of the run, then to `final`; with three phases back to `low` in between."""
    phases = [(pct_start * end - 1, low, high)]
    if three_phase:
        phases += [(2 * pct_start * end - 2, high, low), (end - 1, low, final)]
    else:
        phases += [(end - 1, high, final)]
    begun = 0.0
    for ends, start, target in phases:
        if at <= ends:
            return annealed(anneal, start, target, (at - begun) / (ends - begun) if ends > begun else 1.0)
        begun = ends
    return final


def warmup_factor(kind: Warmup, at: int, length: int, ratio: float) -> float:
    """What the value is multiplied with at iteration `at` of a warm-up of `length` iterations, which starts at `ratio`."""
    if kind == "constant":
        return ratio
    if kind == "linear":
        return 1 - (1 - at / length) * (1 - ratio)
    return float(ratio ** (1 - at / length))
