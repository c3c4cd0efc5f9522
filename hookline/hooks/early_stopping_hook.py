"""Stopping when going on does not pay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.engine.metrics import better_when
from hookline.errors import ConfigError

WEIGHTS = ("state_dict", "ema_state_dict")


@HOOKS.register()
@dataclass
class EarlyStoppingHook(BaseHook):
    """Stop when `monitor` has not improved by more than `min_delta` for `patience` validations.

    `mode` is `min`, `max` or `auto` (the metric's name tells). With a `baseline` only what is better than it resets the
    patience. It also stops at `stopping_threshold` (good enough), at `divergence_threshold` (hopeless) and, with `check_finite`,
    when the metric is not a finite number. With `restore_best_weights` the run ends with the weights of its best validation, and
    with an average of that moment if there is one; until then a copy of them is part of each checkpoint.
    """

    monitor: str = "val_loss"
    patience: int = 10
    min_delta: float = 0.0
    mode: Literal["min", "max", "auto"] = "auto"
    baseline: float | None = None
    restore_best_weights: bool = True
    check_finite: bool = True
    stopping_threshold: float | None = None
    divergence_threshold: float | None = None
    best_score: float | None = state(None)
    best_epoch: int | None = state(None)
    wait_count: int = state(0)
    stopped_epoch: int | None = state(None)
    last_score: float | None = state(None)
    judged_at: int = state(-1)  # the iteration of the last validation that was counted: one is not counted twice
    best: dict[str, Any] | None = state(None)

    priority = Priority.VERY_LOW

    def __post_init__(self) -> None:
        if self.patience < 0 or self.min_delta < 0:
            raise ValueError(f"EarlyStoppingHook: patience and min_delta must not be negative, got {self.patience} and {self.min_delta}")
        rule = {"min": "less", "max": "greater", "auto": better_when(self.monitor)}[self.mode]
        self._sign = {"greater": 1, "less": -1, None: 0}[rule]  # times a score: more is better
        self._best_is_new, self._restored_at = False, -1
        if not self.restore_best_weights:
            self.leave_alone("before_save_checkpoint", "after_run")

    def before_train(self, runner: BaseRunner) -> None:
        names = runner.evaluation.names(runner)
        runner.evaluation.check_name(runner, self.name, self.monitor)
        if not self._sign:  # only now: a name that is not measured is the greater mistake, and maybe why it tells nothing
            unsure = (
                f" (and what a validation gives is not known before the first one: is there a {self.monitor!r}?)" if names is None else ""
            )
            raise ConfigError(
                f"{self.name}: {self.monitor!r} does not tell by its name whether less is better{unsure}: set mode to min or max"
            )
        if runner.val_loader is None:
            runner.logger.warning("%s: there is no validation data, so %s will never be measured", self.name, self.monitor)
        reason = self._reason_to_stop()
        if self.stopped_epoch is not None and reason is not None:  # resumed after it had stopped, and nothing says otherwise now
            runner.request_stop(reason)

    def after_val_epoch(self, runner: BaseRunner) -> None:
        score = runner.metrics.get(self.monitor)
        if score is None or self.judged_at == runner.iter:
            return
        self.last_score, self.judged_at = score, runner.iter
        improved = self._better(score, self.best_score)
        if improved:
            self.best_score, self.best_epoch = score, runner.epoch + 1
            if self.restore_best_weights:
                self._best_is_new = True
                runner.request_save(write=_nothing)  # so that there is a snapshot even if nobody else wants one
        self.wait_count = 0 if improved and self._better(score, self.baseline) else self.wait_count + 1
        reason = self._reason_to_stop()
        if reason is not None:
            self.stopped_epoch = runner.epoch + 1
            runner.request_stop(reason)

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        checkpoint = runner.checkpoint
        assert checkpoint is not None
        if self._best_is_new:  # at a seam averaging hooks have put the model's own weights back, and added theirs here
            self._best_is_new = False
            self.best = {key: _copy(checkpoint[key]) for key in WEIGHTS if key in checkpoint}
            checkpoint["hooks"][self.name] = self.state_dict()

    def after_run(self, runner: BaseRunner) -> None:
        if self.best is not None and self.judged_at != self._restored_at:  # not again after a test that follows, maybe of other weights
            self._restored_at = self.judged_at
            text = "%s: training ends with the weights of its best validation, %s %.6g of epoch %d (restore_best_weights)"
            runner.logger.info(text, self.name, *self._best_is())
            runner.load_weights(self.best)

    def _better(self, score: float, than: float | None) -> bool:
        if than is None:
            return math.isfinite(score)
        return self._sign * (score - than) > self.min_delta

    def _reason_to_stop(self) -> str | None:
        score, name = self.last_score, f"{self.name}: {self.monitor}"
        if score is None:
            return None
        if self.check_finite and not math.isfinite(score):
            return f"{name} is {score}"
        if self.stopping_threshold is not None and self._sign * (score - self.stopping_threshold) >= 0:
            return f"{name} {score:.6g} has reached the stopping_threshold {self.stopping_threshold}"
        if self.divergence_threshold is not None and self._sign * (score - self.divergence_threshold) <= 0:
            return f"{name} {score:.6g} has reached the divergence_threshold {self.divergence_threshold}"
        if self.wait_count and self.wait_count >= self.patience:
            best = "never improved" if self.best_score is None else "not improved on {1:.6g} of epoch {2}".format(*self._best_is())
            than = "" if self.baseline is None else f", or not beyond the baseline {self.baseline},"
            return f"{name} has {best}{than} in {self.wait_count} validations"
        return None

    def _best_is(self) -> tuple[str, float, int]:
        assert self.best_score is not None
        assert self.best_epoch is not None
        return self.monitor, self.best_score, self.best_epoch


def _nothing(checkpoint: dict[str, Any]) -> None:
    """A snapshot is all that is wanted."""


def _copy(weights: dict[str, Any]) -> dict[str, Any]:
    return {key: value.detach().to("cpu", copy=True) if isinstance(value, torch.Tensor) else value for key, value in weights.items()}
