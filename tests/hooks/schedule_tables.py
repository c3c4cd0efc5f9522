"""Tables of learning rates and momenta that are computed without Hookline.

They come from torch's schedulers where there is one, otherwise from a formula.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch.optim import lr_scheduler

EPOCHS, LENGTH = 12, 2
ITERS = EPOCHS * LENGTH
BASE, MOMENTUM = 0.1, 0.9

Table = list[float]


def by_torch(make: Callable[[torch.optim.Optimizer], Any], count: int, key: str = "lr") -> Table:
    """Return the values of one of torch's schedulers."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=BASE, momentum=MOMENTUM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # The optimizer is never stepped.
        scheduler = make(optimizer)
        table = []
        for index in range(count):
            table.append(float(optimizer.param_groups[0][key]))
            if index + 1 < count:
                scheduler.step()
    return table


def by_formula(formula: Callable[[int], float], count: int) -> Table:
    return [formula(at) for at in range(count)]


def warmed(
    table: Table, kind: str | None, length: int, ratio: float, divide: bool = False
) -> Table:
    """Return a table by iteration with a warm-up at its start."""
    result = []
    for at, value in enumerate(table):
        factor = 1.0
        if at < length and kind == "constant":
            factor = ratio
        elif at < length and kind == "linear":
            factor = ratio + (1 - ratio) * at / length
        elif at < length and kind == "exp":
            factor = math.exp(math.log(ratio) * (length - at) / length)
        result.append(value / factor if divide else value * factor)
    return result


def wave(high: float, low: float, part: float) -> float:
    """Return a point of half a cosine wave, computed in its half-angle form."""
    return low + (high - low) * math.cos(part * math.pi / 2) ** 2


# For each policy: its parameters, and the table of its values for a run of `n` epochs or iterations.
RATES: dict[str, tuple[str, dict[str, Any], Callable[[int], Table]]] = {
    "fixed": ("Fixed", {}, lambda n: [BASE] * n),
    "step every 5": ("Step", {"step": 5, "gamma": 0.5}, lambda n: by_torch(lambda o: lr_scheduler.StepLR(o, 5, 0.5), n)),
    "step at 4 and 9": ("Step", {"step": [4, 9]}, lambda n: by_torch(lambda o: lr_scheduler.MultiStepLR(o, [4, 9], 0.1), n)),
    "step with a minimum": ("Step", {"step": [2, 4, 6], "min_lr": 0.003}, lambda n: [[0.1, 0.01, 0.003][min(p // 2, 2)] for p in range(n)]),
    "exp": ("Exp", {"gamma": 0.8}, lambda n: by_torch(lambda o: lr_scheduler.ExponentialLR(o, 0.8), n)),
    "poly": ("Poly", {"power": 2.0}, lambda n: by_torch(lambda o: lr_scheduler.PolynomialLR(o, n, 2.0), n)),
    "poly with a minimum": ("Poly", {"power": 0.9, "min_lr": 0.01}, lambda n: by_formula(lambda p: 0.01 + 0.09 * ((n - p) / n) ** 0.9, n)),
    "inv": ("Inv", {"gamma": 0.3, "power": 0.7}, lambda n: by_formula(lambda p: BASE / (1 + 0.3 * p) ** 0.7, n)),
    "cosine": ("CosineAnnealing", {"min_lr": 0.02}, lambda n: by_torch(lambda o: lr_scheduler.CosineAnnealingLR(o, n, 0.02), n)),
    "cosine by ratio": ("CosineAnnealing", {"min_lr_ratio": 0.05}, lambda n: by_formula(lambda p: wave(BASE, 0.005, p / n), n)),
    "flat cosine": (
        "FlatCosineAnnealing",
        {"start_percent": 0.5, "min_lr": 0.0},
        lambda n: [BASE] * (n // 2) + by_formula(lambda p: wave(BASE, 0.0, p / (n // 2)), n // 2),
    ),
    "restarts": (
        "CosineRestart",
        {"periods": [6, 6, 12], "restart_weights": [1, 1, 1], "min_lr": 0.001},
        lambda n: (
            by_torch(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 6, 1, 0.001), 12)
            + by_torch(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 12, 1, 0.001), 12)
        )[:n],
    ),
    "restarts with weights": (
        "CosineRestart",
        {"periods": [10, 14], "restart_weights": [1, 0.5], "min_lr_ratio": 0.1},
        lambda n: [wave(0.1, 0.01, p / 10) if p < 10 else 0.01 + 0.5 * (wave(0.1, 0.01, (p - 10) / 14) - 0.01) for p in range(n)],
    ),
    "cyclic, straight": (
        "Cyclic",
        {"target_ratio": [10, 1], "step_ratio_up": 0.5, "cyclic_times": 2, "anneal_strategy": "linear"},
        lambda n: by_torch(lambda o: lr_scheduler.CyclicLR(o, BASE, 1.0, n // 4, n // 4, cycle_momentum=False), n),
    ),
    "cyclic": (
        "Cyclic",
        {},
        lambda n: [
            wave(BASE, 1.0, p / int(0.4 * n)) if p < int(0.4 * n) else wave(1.0, 1e-5, (p - int(0.4 * n)) / (n - int(0.4 * n)))
            for p in range(n)
        ],
    ),
    "cyclic with falling peaks": (
        "Cyclic",
        {"target_ratio": [5, 1], "cyclic_times": 3, "step_ratio_up": 0.5, "gamma": 0.5},
        lambda n: [
            wave(BASE, BASE + 0.4 * 0.5 ** (p // (n // 3)), (p % (n // 3)) / (n // 6)) if p % (n // 3) < n // 6
            else wave(BASE + 0.4 * 0.5 ** (p // (n // 3)), BASE, (p % (n // 3) - n // 6) / (n // 6))
            for p in range(n)
        ],
    ),
    "one cycle": ("OneCycle", {"max_lr": 0.5}, lambda n: by_torch(lambda o: lr_scheduler.OneCycleLR(o, 0.5, n), n)),
    "one cycle in three phases": (
        "OneCycle",
        {"max_lr": 0.5, "three_phase": True, "anneal_strategy": "linear", "pct_start": 0.4, "div_factor": 10, "final_div_factor": 100},
        lambda n: by_torch(
            lambda o: lr_scheduler.OneCycleLR(
                o, 0.5, n, three_phase=True, anneal_strategy="linear", pct_start=0.4, div_factor=10, final_div_factor=100
            ),
            n,
        ),
    ),
    "linear": ("LinearAnnealing", {"min_lr_ratio": 0.1}, lambda n: by_torch(lambda o: lr_scheduler.LinearLR(o, 1.0, 0.1, n), n)),
    "linear to a value": ("LinearAnnealing", {"min_lr": 0.0}, lambda n: by_formula(lambda p: BASE * (n - p) / n, n)),
}  # fmt: skip

MOMENTA: dict[str, tuple[str, dict[str, Any], Callable[[int], Table]]] = {
    "step every 5": ("Step", {"step": 5}, lambda n: [MOMENTUM / 2 ** (p // 5) for p in range(n)]),
    "step with a minimum": (
        "Step",
        {"step": [3, 6], "gamma": 0.1, "min_momentum": 0.05},
        lambda n: [0.9 if p < 3 else 0.09 if p < 6 else 0.05 for p in range(n)],
    ),
    "cosine": ("CosineAnnealing", {"min_momentum": 0.5}, lambda n: by_formula(lambda p: wave(MOMENTUM, 0.5, p / n), n)),
    "cosine by ratio": ("CosineAnnealing", {"min_momentum_ratio": 0.5}, lambda n: by_formula(lambda p: wave(MOMENTUM, 0.45, p / n), n)),
    "linear": ("LinearAnnealing", {"min_momentum": 0.3}, lambda n: by_formula(lambda p: (0.9 * (n - p) + 0.3 * p) / n, n)),
    "cyclic, straight": (
        "Cyclic",
        {"target_ratio": [0.8 / 0.9, 1], "step_ratio_up": 0.5, "anneal_strategy": "linear"},
        lambda n: by_torch(
            lambda o: lr_scheduler.CyclicLR(o, BASE, 1.0, n // 2, n // 2, base_momentum=0.8, max_momentum=0.9), n, "momentum"
        ),
    ),
    "one cycle": ("OneCycle", {}, lambda n: by_torch(lambda o: lr_scheduler.OneCycleLR(o, 0.5, n), n, "momentum")),
    "one cycle in three phases": (
        "OneCycle",
        {"three_phase": True, "anneal_strategy": "linear", "base_momentum": 0.8, "max_momentum": 0.9},
        lambda n: by_torch(
            lambda o: lr_scheduler.OneCycleLR(o, 0.5, n, three_phase=True, anneal_strategy="linear", base_momentum=0.8, max_momentum=0.9),
            n, "momentum",
        ),
    ),
}  # fmt: skip


def by_iteration(policy: Callable[[int], Table], by_epoch: bool) -> Table:
    """Return the table of a policy with one value for each iteration of the run."""
    if not by_epoch:
        return policy(ITERS)
    return [value for value in policy(EPOCHS) for _ in range(LENGTH)]
