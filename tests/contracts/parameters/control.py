"""Parameters of hooks that stop a run, roll it back or call functions: observed is its course."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline import HOOKS
from hookline.errors import InvalidLoss
from hookline.hooks import CheckpointHook, EvalHook, LambdaHook
from tests.contracts.parameters.rows import Config, Row, rows
from tests.contracts.training import Scripted, train, weights_of
from tests.helpers import batches, make_runner


def end_of_run(config: Config, folder: Path) -> tuple[int, str, dict[str, Any]]:
    """Return after how many iterations a run of two epochs ends, and the reason's fields."""
    runner = train(folder, config)
    assert runner.stop_reason is not None
    return runner.iter, runner.stop_reason.hook, dict(runner.stop_reason.details)


def end_with_metrics(config: Config, folder: Path) -> tuple[int, dict[str, Any]]:
    """Return when a run of eight epochs with given results ends, and the reason's fields."""
    runner = _with_metrics(config, folder)
    assert runner.stop_reason is not None
    return runner.iter, {**runner.stop_reason.details}


def weights_with_metrics(config: Config, folder: Path) -> dict[str, Any]:
    """Return the weights at the end of a run with given results."""
    return weights_of(_with_metrics(config, folder).model)


def _with_metrics(config: Config, folder: Path) -> Any:
    metrics = {
        "quux": Scripted(5.0, 4.0, 3.5, 3.4, 3.6, 3.7, 3.8, 3.9),
        "corge": Scripted(1.0, 2.0, 0.5),
        "grault": Scripted(1.0, math.inf, 0.5, 0.4),
    }
    loader = batches(1)
    return train(folder, config, EvalHook(), metrics=metrics, train_loader=loader, max_epochs=8)


def iterations_with_bad_loss(config: Config, folder: Path) -> int:
    """Return how many iterations a run completes whose second loss is not finite."""
    runner = make_runner(folder, HOOKS.build(config), _factors({1: math.nan}), max_iters=8)
    with contextlib.suppress(InvalidLoss):
        runner.train()
    return runner.iter


def messages(config: Config, folder: Path) -> list[Any]:
    """Return the messages of a run, with their receivers and time limits."""
    sent: list[Any] = []

    def receiver(kind: str) -> Callable[[Any, float], Any]:
        def connect(target: Any, timeout: float) -> Callable[[bytes], object]:
            return lambda data: sent.append((kind, target, timeout, json.loads(data)["event"]))

        return connect

    with pytest.MonkeyPatch.context() as patch:
        for kind in ("post", "run"):
            patch.setattr(f"hookline.hooks.notify_hook.{kind}", receiver(kind))
        train(folder, config)
    return sent


def rollbacks(losses: dict[int, float]) -> Callable[[Config, Path], Any]:
    """Return an observation of a run of thirty iterations with given factors of its losses."""

    def observe(config: Config, folder: Path) -> Any:
        hook: Any = HOOKS.build(config)
        saves = CheckpointHook(by_epoch=False, interval=4, save_best=False, max_keep_ckpts=-1)
        runner: Any = make_runner(
            folder, hook, saves, _factors(losses), train_loader=batches(10), max_epochs=3
        )
        try:
            runner.train()
            failed = False
        except InvalidLoss:
            failed = True
        undone = [(entry["iter"], entry["back_to"], entry["skipped"]) for entry in hook.history]
        return failed, undone, runner.optimizer.param_groups[0]["lr"]

    return observe


def _factors(losses: dict[int, float]) -> LambdaHook:
    """Return a hook that multiplies the losses of some iterations."""

    def multiply(runner: Any) -> None:
        place = runner.epoch * (runner.epoch_length or 0) + runner.batch_idx
        runner.outputs["loss"] = runner.outputs["loss"] * losses.get(place, 1.0)

    return LambdaHook(after_forward=multiply)


BAD = rollbacks({7: math.nan})
SPIKE = rollbacks({17: 100.0})
# Losses that are far above the rest long before one that is slightly above it.
LATE_SPIKE = rollbacks({0: 30.0, 1: 30.0, 2: 30.0, 17: 5.0})


def calls(config: Config, folder: Path) -> dict[str, list[tuple[int, int]]]:
    """Return when each of two functions is called, by iteration and epoch."""
    events = train(folder, config).events
    seen = {}
    for name in ("one", "other"):
        seen[name] = [(scalar.iter, scalar.epoch) for scalar in events.history(name)]
    return seen


def one(runner: Any) -> None:
    runner.events.put_scalar("one", 1.0)


def other(runner: Any) -> None:
    runner.events.put_scalar("other", 1.0)


def caches_emptied(config: Config, folder: Path) -> int:
    """Return how often a run with validations empties the cache of the GPU."""
    emptied = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
        train(folder, config, EvalHook())
    return len(emptied)


ROWS: dict[str, list[Row]] = {
    "NotifyHook": [
        *rows(messages, webhook=(None, "http://127.0.0.1:9/x"), command=(None, ["true"])),
        *rows(
            messages,
            {"command": ["true"]},
            moments=(("end", "failure", "best"), ["failure"]),
            timeout=(10.0, 60.0),
        ),
    ],
    "StopAtHook": rows(end_of_run, iter=(3, 4), epoch=(1, 2)),
    "TimeLimitHook": rows(end_of_run, limit=(1e-6, "1h")),
    "EarlyStoppingHook": [
        *rows(
            end_with_metrics,
            {"monitor": "quux", "mode": "min", "patience": 2},
            monitor=("quux", "corge"),
            patience=(2, 3),
            min_delta=(0.0, 0.8),
            mode=("min", "max"),
            baseline=(None, 3.45),
            stopping_threshold=(None, 3.6),
            divergence_threshold=(None, 4.5),
        ),
        *rows(
            end_with_metrics,
            {"monitor": "grault", "mode": "min", "patience": 2},
            check_finite=(True, False),
        ),
        *rows(
            weights_with_metrics,
            {"monitor": "quux", "mode": "min", "patience": 2},
            restore_best_weights=(True, False),
        ),
    ],
    "CheckInvalidLossHook": rows(iterations_with_bad_loss, interval=(1, 3)),
    "RollbackHook": [
        *rows(BAD, skip_batches=(2, 1), lr_factor=(1.0, 0.5)),
        *rows(rollbacks({7: math.nan, 17: math.nan}), max_rollbacks=(3, 1)),
        *rows(SPIKE, spike=(None, 3.0)),
        *rows(LATE_SPIKE, {"spike": 2.5}, window=(10, 20)),
    ],
    "LambdaHook": [
        *rows(calls, {"fn": one}, fn_name=("after_train_iter", "after_train_epoch")),
        *rows(calls, {"fn_name": "after_train_iter"}, fn=(one, other)),
    ],
    "EmptyCacheHook": rows(
        caches_emptied,
        before_epoch=(False, True),
        after_epoch=(True, False),
        after_iter=(False, True),
    ),
}
