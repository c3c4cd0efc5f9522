"""Rows about EarlyStoppingHook."""

from __future__ import annotations

import math
from typing import Any

import torch

from hookline.engine import BaseHook, BaseRunner
from hookline.hooks import EarlyStoppingHook, EvalHook
from tests.documents.runs import Scores, validated
from tests.documents.table import REQUIREMENTS, Section

stopping = Section(REQUIREMENTS, "early stopping hook")
stopping.defaults(
    EarlyStoppingHook,
    {
        "monitor": "val_loss",
        "patience": 10,
        "min_delta": 0.0,
        "mode": "auto",
        "baseline": None,
        "restore_best_weights": True,
        "check_finite": True,
        "stopping_threshold": None,
        "divergence_threshold": None,
    },
)


def stopped(scores: list[float], **options: Any) -> tuple[int, EarlyStoppingHook]:
    """Return after how many epochs a run with these scores stops, and its hook."""
    options.setdefault("restore_best_weights", False)
    hook = EarlyStoppingHook(**options)
    metric = options.get("monitor", "val_loss")
    runner = validated(hook, Scores(**{metric: scores}), EvalHook(), epochs=len(scores))
    return runner.epoch, hook


def epochs(scores: list[float], **options: Any) -> int:
    return stopped(scores, **options)[0]


FLAT = [1.0, 1.0, 1.0, 1.0, 1.0]
stopping.add(
    "parameter",
    "`monitor` names the metric that decides",
    lambda: epochs([0.1, 0.2, 0.3, 0.4, 0.5], monitor="wer", patience=1) == 2,
)
stopping.add(
    "parameter",
    "`patience` is the number of validations without an improvement",
    lambda: epochs(FLAT, patience=2) == 3 and epochs(FLAT, patience=3) == 4,
)
stopping.add(
    "parameter",
    "`min_delta` is what an improvement must exceed",
    lambda: (
        epochs([1.0, 0.9, 0.8, 0.7], patience=2, min_delta=0.15) == 3 + 1
        and epochs([1.0, 0.9, 0.8, 0.7], patience=1, min_delta=0.15) == 2
    ),
)
stopping.add(
    "parameter",
    "`baseline` has to be passed for the patience to start over",
    lambda: (
        epochs([5.0, 4.0, 3.0, 2.0], patience=2, baseline=1.0) == 2
        and epochs([5.0, 4.0, 3.0, 2.0], patience=2) == 4
    ),
)
stopping.add(
    "parameter",
    "`check_finite` of false goes on with NaN",
    lambda: epochs([1.0, math.nan, 0.5], check_finite=False) == 3,
)
stopping.add(
    "parameter",
    "`stopping_threshold` stops at once when the metric is good enough",
    lambda: epochs([0.5, 0.1, 0.05], stopping_threshold=0.1) == 2,
)
stopping.add(
    "parameter",
    "`divergence_threshold` stops at once when the metric is too bad",
    lambda: epochs([0.5, 9.0, 0.05], divergence_threshold=9.0) == 2,
)


def final_weights(restore: bool) -> tuple[torch.Tensor, list[torch.Tensor]]:
    seen: list[torch.Tensor] = []

    class Keep(BaseHook):
        def after_train_epoch(self, runner: BaseRunner) -> None:
            seen.append(runner.model[0].weight.detach().clone())

    hook = EarlyStoppingHook(patience=2, restore_best_weights=restore)
    runner = validated(
        hook, Keep(), Scores(val_loss=[2.0, 1.0, 3.0, 4.0, 5.0]), EvalHook(), epochs=5
    )
    return runner.model[0].weight.detach(), seen


@stopping.row(
    "parameter", "`restore_best_weights` ends the run with the weights of the best validation"
)
def _() -> None:
    final, seen = final_weights(restore=True)
    assert len(seen) == 4
    assert torch.equal(final, seen[1])
    final, seen = final_weights(restore=False)
    assert torch.equal(final, seen[3])


STATES = {"best_score": 0.5, "best_epoch": 2, "wait_count": 2, "stopped_epoch": 4}
for _name, _value in STATES.items():
    stopping.add(
        "behavior",
        f"`{_name}` is kept, also in checkpoints",
        lambda name=_name, value=_value: (
            getattr(stopped([1.0, 0.5, 0.7, 0.6, 0.4], patience=2)[1], name) == value
            and stopped([1.0, 0.5, 0.7, 0.6, 0.4], patience=2)[1].state_dict()[name] == value
        ),
    )
stopping.add(
    "parameter",
    "`mode` of min takes smaller as better",
    lambda: epochs([0.1, 0.2, 0.3], monitor="m", mode="min", patience=1) == 2,
)
stopping.add(
    "parameter",
    "`mode` of max takes larger as better",
    lambda: (
        epochs([0.1, 0.2, 0.3], monitor="m", mode="max", patience=1) == 3
        and epochs([0.3, 0.2, 0.1], monitor="m", mode="max", patience=1) == 2
    ),
)
stopping.add(
    "parameter",
    "`mode` of auto decides by the name of the metric",
    lambda: (
        epochs([0.1, 0.2, 0.3], patience=1) == 2
        and epochs([0.1, 0.2, 0.3], monitor="accuracy", patience=1) == 3
    ),
)


@stopping.row("moment", "the decision is made after the validation")
def _() -> None:
    seen = []

    class Look(BaseHook):
        def after_val_epoch(self, runner: BaseRunner) -> None:
            seen.append(runner.hook("EarlyStoppingHook").wait_count)

    look = Look(priority=0)  # the last in after_val_epoch
    hook = EarlyStoppingHook(restore_best_weights=False)
    validated(look, hook, Scores(val_loss=[1.0, 1.0, 1.0]), EvalHook())
    assert seen == [0, 1, 2]
    assert hook.get_triggered_stages().count("after_val_epoch") == 1


def reason(scores: list[float], **options: Any) -> dict[str, Any]:
    hook = EarlyStoppingHook(restore_best_weights=False, **options)
    metric = options.get("monitor", "val_loss")
    runner = validated(hook, Scores(**{metric: scores}), EvalHook(), epochs=len(scores))
    return runner.stop_reason.details


stopping.add(
    "formula",
    "a run stops when `wait_count >= patience`",
    lambda: (
        reason(FLAT, patience=2)["parameter"] == "patience"
        and reason(FLAT, patience=2)["wait_count"] == 2
    ),
)
stopping.add(
    "formula",
    "in mode max, a run stops when the score is at least `stopping_threshold`",
    lambda: reason([0.5, 0.9, 0.95], monitor="accuracy", stopping_threshold=0.9)["score"] == 0.9,
)
stopping.add(
    "formula",
    "a run stops when the score is at least `divergence_threshold`",
    lambda: (
        reason([0.5, 3.0, 0.1], divergence_threshold=3.0)["parameter"] == "divergence_threshold"
    ),
)
for _value in (math.nan, math.inf):
    stopping.add(
        "formula",
        f"a run stops when the metric is {_value}",
        lambda value=_value: reason([0.5, value, 0.1])["parameter"] == "check_finite",
    )
