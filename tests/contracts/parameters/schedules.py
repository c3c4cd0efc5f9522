"""Parameters of learning rate and momentum schedules: observed are the values of each step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from hookline.hooks import LambdaHook
from tests.contracts.parameters.rows import Config, Row, rows
from tests.contracts.training import train
from tests.helpers import batches, small_model

LENGTH: dict[str, Any] = {"train_loader": batches(2), "max_epochs": 4}


def two_groups(momentum: float = 0.0) -> dict[str, Any]:
    """Return a model and an optimizer with one group for each of its layers."""
    model = small_model()
    layers = [{"params": model[0].parameters()}, {"params": model[2].parameters()}]
    optimizer = torch.optim.SGD(layers, lr=0.1, momentum=momentum)
    return {"model": model, "optimizer": optimizer, **LENGTH}


def rates_used(config: Config, folder: Path) -> list[float]:
    """Return the learning rate of the first group in every step."""
    used: list[float] = []
    note = LambdaHook(after_forward=lambda optimizer: used.append(optimizer.param_groups[0]["lr"]))
    train(folder, config, note, **two_groups())
    return used


def momenta_used(config: Config, folder: Path) -> list[float]:
    """Return the momentum of the first group in every step."""
    used: list[float] = []

    def note(optimizer: torch.optim.Optimizer) -> None:
        used.append(optimizer.param_groups[0]["momentum"])

    train(folder, config, LambdaHook(after_forward=note), **two_groups(momentum=0.9))
    return used


def rates_put_back(config: Config, folder: Path) -> list[float]:
    """Return the learning rates of a run in which other code sets a rate after the first step."""
    used: list[float] = []

    def interfere(runner: Any) -> None:
        used.append(runner.optimizer.param_groups[0]["lr"])
        if runner.iter == 0:
            runner.optimizer.param_groups[0]["lr"] = 0.5

    train(folder, config, LambdaHook(after_train_iter=interfere), **two_groups())
    return used


def scheduled(observe: Any, given: Config | None = None, /, **values: tuple[Any, Any]) -> list[Row]:
    """Return the rows of a policy: its own parameters, and those that all schedules share."""
    given = given or {}
    table = rows(observe, given, groups=(None, ["1"]), **values)
    if "by_epoch" not in values:
        table += rows(observe, given, by_epoch=(True, False))
    table += rows(observe, {**given, "warmup_iters": 3}, warmup=("linear", "constant"))
    table += rows(observe, {**given, "warmup": "linear"}, warmup_iters=(2, 3))
    warm = {**given, "warmup": "linear", "warmup_iters": 1}
    table += rows(observe, warm, warmup_by_epoch=(False, True))
    table += rows(observe, {**warm, "warmup_iters": 3}, warmup_ratio=(0.1, 0.5))
    return table


def towards_minimum(observe: Any, minimum: str, given: Config | None = None) -> list[Row]:
    """Return the rows of a policy that ends at a minimum, given as a value or as a ratio."""
    given = given or {}
    table = scheduled(observe, {minimum: 0.01, **given})
    table += rows(observe, given, **{minimum: (0.01, 0.02), f"{minimum}_ratio": (0.1, 0.2)})
    return table


CYCLE = {
    "target_ratio": ([2.0, 0.5], [3.0, 0.5]),
    "cyclic_times": (1, 2),
    "step_ratio_up": (0.4, 0.6),
    "anneal_strategy": ("cos", "linear"),
    "by_epoch": (False, True),
}

DOWN = {"type": "cosine", "to": 0.01}

ROWS: dict[str, list[Row]] = {
    "FixedLrUpdaterHook": scheduled(rates_put_back),
    "StepLrUpdaterHook": [
        *scheduled(rates_used, {"step": 1}, gamma=(0.1, 0.5), min_lr=(None, 0.005)),
        *rows(rates_used, step=(1, [1, 3])),
    ],
    "ExpLrUpdaterHook": [
        *scheduled(rates_used, {"gamma": 0.9}),
        *rows(rates_used, gamma=(0.9, 0.8)),
    ],
    "PolyLrUpdaterHook": scheduled(rates_used, power=(1.0, 2.0), min_lr=(0.0, 0.05)),
    "InvLrUpdaterHook": [
        *scheduled(rates_used, {"gamma": 0.5}, power=(1.0, 2.0)),
        *rows(rates_used, gamma=(0.5, 0.2)),
    ],
    "CosineAnnealingLrUpdaterHook": towards_minimum(rates_used, "min_lr"),
    "LinearAnnealingLrUpdaterHook": towards_minimum(rates_used, "min_lr"),
    "FlatCosineAnnealingLrUpdaterHook": [
        *towards_minimum(rates_used, "min_lr", {"start_percent": 0.25}),
        *rows(rates_used, {"min_lr": 0.01}, start_percent=(0.75, 0.25)),
    ],
    "WSDLrUpdaterHook": [
        *towards_minimum(rates_used, "min_lr", {"decay_ratio": 0.75}),
        *rows(rates_used, {"min_lr": 0.01}, decay_ratio=(0.5, 1.0)),
        *rows(rates_used, {"min_lr": 0.01, "decay_ratio": 1.0}, decay_shape=("linear", "cosine")),
    ],
    "ValueUpdaterHook": [
        *scheduled(rates_used, {"value": "lr", "policy": DOWN}),
        *rows(momenta_used, {"policy": DOWN}, value=("lr", "momentum")),
        *rows(rates_used, {"value": "lr"}, policy=("fixed", DOWN)),
    ],
    "CosineRestartLrUpdaterHook": [
        *scheduled(
            rates_used,
            {"min_lr": 0.01, "periods": [4, 4], "restart_weights": [1.0, 0.5]},
        ),
        *rows(
            rates_used,
            {"periods": [2, 2], "restart_weights": [1.0, 0.5]},
            min_lr=(0.01, 0.02),
            min_lr_ratio=(0.1, 0.2),
        ),
        *rows(
            rates_used,
            {"min_lr": 0.01, "restart_weights": [1.0, 0.5]},
            periods=([2, 2], [1, 3]),
        ),
        *rows(
            rates_used,
            {"min_lr": 0.01, "periods": [2, 2]},
            restart_weights=([1.0, 0.5], [1.0, 0.2]),
        ),
    ],
    "CyclicLrUpdaterHook": [
        *scheduled(rates_used, **CYCLE),
        *rows(rates_used, {"cyclic_times": 2}, gamma=(1.0, 0.5)),
    ],
    "OneCycleLrUpdaterHook": [
        *scheduled(
            rates_used,
            {"max_lr": 0.4},
            total_steps=(None, 12),
            pct_start=(0.3, 0.5),
            anneal_strategy=("cos", "linear"),
            div_factor=(25.0, 5.0),
            final_div_factor=(1e4, 10.0),
            three_phase=(False, True),
            by_epoch=(False, True),
        ),
        *rows(rates_used, max_lr=(0.4, [0.2, 0.2])),
    ],
    "StepMomentumUpdaterHook": [
        *scheduled(momenta_used, {"step": 1}, gamma=(0.5, 0.8), min_momentum=(None, 0.4)),
        *rows(momenta_used, step=(1, [1, 3])),
    ],
    "CosineAnnealingMomentumUpdaterHook": towards_minimum(momenta_used, "min_momentum"),
    "LinearAnnealingMomentumUpdaterHook": towards_minimum(momenta_used, "min_momentum"),
    "CyclicMomentumUpdaterHook": [
        *scheduled(momenta_used, **CYCLE),
        *rows(momenta_used, {"cyclic_times": 2}, gamma=(1.0, 0.5)),
    ],
    "OneCycleMomentumUpdaterHook": scheduled(
        momenta_used,
        base_momentum=(0.85, 0.8),
        max_momentum=(0.95, 0.9),
        pct_start=(0.3, 0.5),
        anneal_strategy=("cos", "linear"),
        three_phase=(False, True),
        by_epoch=(False, True),
    ),
}
