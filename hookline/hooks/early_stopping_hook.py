"""Stop training when a metric no longer improves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, StopReason, state
from hookline.errors import ConfigError, Suggestion, require_at_least
from hookline.metrics.direction import infer_direction

WEIGHTS = ("state_dict", "ema_state_dict")

# A score times its sign: more is better. 0 if the direction is unknown.
SIGNS = {"greater": 1, "less": -1, None: 0}


@HOOKS.register()
@dataclass
class EarlyStoppingHook(BaseHook):
    """Stop training when a metric has not improved for several validations.

    Args:
        monitor: Metric to watch.
        patience: Number of validations in a row without an improvement after which to stop.
        min_delta: Difference that an improvement must exceed.
        mode: `min` if lower is better, `max` if higher is better, `auto` to infer it from the name
            of the metric.
        baseline: Only a value better than this resets the patience.
        restore_best_weights: End the run with the weights of the best validation, and with the
            weight average of that time if there is one. Until then, each checkpoint holds a copy.
            Another `train()` begins with them. An interrupted run keeps its own weights, with which
            it can continue.
        check_finite: Stop when the metric is NaN or infinite.
        stopping_threshold: Stop when the metric is at least this good.
        divergence_threshold: Stop when the metric is at least this bad.

    Attributes:
        best_score: Best value of the metric so far.
        best_epoch: Epoch of the best validation.
        wait_count: Number of validations since the last improvement.
        stopped_epoch: Epoch after which the hook stopped the run.
        last_score: Latest value of the metric.
        judged_at: Iteration of the last counted validation. No validation counts twice.
        best: Copy of the best weights, with `restore_best_weights`.

    Example:
        ```yaml
        hooks:
          - {type: EarlyStoppingHook, monitor: val_loss, patience: 5, min_delta: 0.001}
        ```
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
    judged_at: int = state(-1)  # the iteration of the last validation that was counted
    best: dict[str, Any] | None = state(None)

    priority = Priority.VERY_LOW
    adds_metrics = False

    def __post_init__(self) -> None:
        require_at_least(self, 0, "patience", "min_delta")
        directions = {"min": "less", "max": "greater", "auto": infer_direction(self.monitor)}
        self._sign = SIGNS[directions[self.mode]]
        self._best_is_new = False
        self._restored_at = -1
        if not self.restore_best_weights:
            self.disable_sites("before_save_checkpoint", "after_run")

    def before_run(self, runner: BaseRunner) -> None:
        runner.best.require(self.name, "monitor", self.monitor)
        if self.mode == "auto":
            self._sign = SIGNS[runner.best.usual_direction(self.monitor)]

    def before_train(self, runner: BaseRunner) -> None:
        if not self._sign:
            message = f"cannot infer whether to minimize or maximize {self.monitor!r}"
            advice = Suggestion(advice="set mode='min' or mode='max'")
            raise ConfigError(
                message, path=("mode",), component=self.name, parameter="mode", suggestion=advice
            )
        if runner.val_loader is None:
            runner.logger.warning(
                "%s: there is no validation data, so %s is never measured", self.name, self.monitor
            )
        reason = self._reason_to_stop()
        if self.stopped_epoch is not None and reason is not None:
            runner.request_stop(reason)  # The run had stopped before it was resumed.

    def after_val_epoch(self, runner: BaseRunner) -> None:
        score = runner.metrics.get(self.monitor)
        if score is None or self.judged_at == runner.iter:
            return
        self.last_score, self.judged_at = score, runner.iter
        has_improved = self._is_better(score, self.best_score)
        if has_improved:
            self.best_score, self.best_epoch = score, runner.epoch + 1
            if self.restore_best_weights:
                self._best_is_new = True
                runner.checkpointer.request_snapshot()
        if has_improved and self._is_better(score, self.baseline):
            self.wait_count = 0
        else:
            self.wait_count += 1
        reason = self._reason_to_stop()
        if reason is not None:
            self.stopped_epoch = runner.epoch + 1
            runner.request_stop(reason)

    def before_save_checkpoint(self, runner: BaseRunner) -> None:
        checkpoint = runner.checkpoint
        assert checkpoint is not None
        if self._best_is_new:
            self._best_is_new = False
            self.best = {key: _copy(checkpoint[key]) for key in WEIGHTS if key in checkpoint}
            checkpoint["hooks"][self.name] = self.state_dict()

    def after_run(self, runner: BaseRunner) -> None:
        if runner.stop_reason is not None and "signal" in runner.stop_reason.details:
            return  # The run is interrupted, and may continue.
        # Only once: a test that follows may be of other weights.
        if self.best is not None and self.judged_at != self._restored_at:
            self._restored_at = self.judged_at
            runner.logger.info(
                "%s: restored the weights of the best validation, %s %.6g of epoch %d",
                self.name, self.monitor, self.best_score, self.best_epoch,
            )  # fmt: skip
            runner.checkpointer.load_weights(self.best)

    def _is_better(self, score: float, than: float | None) -> bool:
        if than is None:
            return math.isfinite(score)
        return self._sign * (score - than) > self.min_delta

    def _reason_to_stop(self) -> StopReason | None:
        score = self.last_score
        if score is None:
            return None
        if self.check_finite and not math.isfinite(score):
            return self._reason(f"{self.monitor} is {score}", "check_finite")
        if self._has_reached(score, self.stopping_threshold, sign=1):
            threshold = f"the stopping_threshold {self.stopping_threshold}"
            return self._reason(
                f"{self.monitor} {score:.6g} reached {threshold}", "stopping_threshold"
            )
        if self._has_reached(score, self.divergence_threshold, sign=-1):
            threshold = f"the divergence_threshold {self.divergence_threshold}"
            return self._reason(
                f"{self.monitor} {score:.6g} reached {threshold}", "divergence_threshold"
            )
        if self.wait_count and self.wait_count >= self.patience:
            return self._reason(self._describe_patience(), "patience")
        return None

    def _has_reached(self, score: float, threshold: float | None, sign: int) -> bool:
        return threshold is not None and sign * self._sign * (score - threshold) >= 0

    def _describe_patience(self) -> str:
        best = "has never improved"
        if self.best_score is not None:
            best = f"has not improved on {self.best_score:.6g} of epoch {self.best_epoch}"
        baseline = "" if self.baseline is None else f" or passed the baseline {self.baseline}"
        return f"{self.monitor} {best}{baseline} in {self.wait_count} validations"

    def _reason(self, message: str, parameter: str) -> StopReason:
        """Return a reason to stop; `parameter` is the one that caused it."""
        details = {
            "monitor": self.monitor,
            "parameter": parameter,
            "score": self.last_score,
            "best": self.best_score,
            "best_epoch": self.best_epoch,
            "wait_count": self.wait_count,
        }
        return StopReason(message, self.name, details)


def _copy(weights: dict[str, Any]) -> dict[str, Any]:
    copies = {}
    for key, value in weights.items():
        if isinstance(value, torch.Tensor):
            value = value.detach().to("cpu", copy=True)
        copies[key] = value
    return copies
