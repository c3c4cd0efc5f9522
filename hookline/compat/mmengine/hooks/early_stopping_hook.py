"""Stop training when a metric no longer improves."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

from hookline.compat.metric_rules import infer_rule
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class EarlyStoppingHook(Hook):
    """Stops after `patience` validations in which `monitor` did not improve by `min_delta`.

    A resumed run continues to count.

    Args:
        monitor: The metric.
        rule: `greater` or `less`; None to infer it from the metric's name.
        min_delta: The smallest change that is an improvement.
        strict: Raise an error if the metric is missing.
        check_finite: Stop when the metric is NaN or infinite.
        patience: The number of validations without improvement.
        stopping_threshold: Stop when the metric is better than this value.
    """

    priority = "LOWEST"

    def __init__(
        self,
        monitor: str,
        rule: str | None = None,
        min_delta: float = 0.1,
        strict: bool = False,
        check_finite: bool = True,
        patience: int = 5,
        stopping_threshold: float | None = None,
    ) -> None:
        self.monitor = monitor
        self.rule = infer_rule(monitor, rule)
        self.min_delta = min_delta if self.rule == "greater" else -min_delta
        self.strict = strict
        self.check_finite = check_finite
        self.patience = patience
        self.stopping_threshold = stopping_threshold
        self.wait_count = 0
        self.best_score = -inf if self.rule == "greater" else inf

    def before_run(self, runner: Any) -> None:
        if not hasattr(runner.train_loop, "stop_training"):
            raise AssertionError("`train_loop` should contain `stop_training` variable.")

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        metrics = metrics or {}
        if self.monitor not in metrics:
            if self.strict:
                raise RuntimeError(
                    f"Early stopping conditioned on metric `{self.monitor}`, which is not among "
                    f"{metrics}"
                )
            warnings.warn(
                f"no early stopping: {self.monitor} is not among the metrics {list(metrics)}",
                stacklevel=2,
            )
            return
        stop, message = self._check_stop_condition(metrics[self.monitor])
        if stop:
            runner.train_loop.stop_training = True
            runner.logger.info(message)

    def _check_stop_condition(self, current_score: float) -> tuple[bool, str]:
        """Return whether to stop, and the reason."""
        if self.check_finite and not isfinite(current_score):
            reason = f"Monitored metric {self.monitor} = {current_score} is infinite."
            return True, f"{reason} Previous best value was {self.best_score:.3f}."
        threshold = self.stopping_threshold
        if threshold is not None and self._is_better(current_score, threshold):
            self.best_score = current_score
            reached = f"`{self.monitor}` = {current_score} is {self.rule} than {threshold}."
            return True, f"Stopping threshold reached: {reached}"
        if self._is_better(self.best_score + self.min_delta, current_score):
            self.wait_count += 1
            message = (
                f"the monitored metric did not improve in the last {self.wait_count} records. "
                f"best score: {self.best_score:.3f}. "
            )
            return self.wait_count >= self.patience, message
        self.best_score = current_score
        self.wait_count = 0
        return False, ""

    def _is_better(self, one: float, other: float) -> bool:
        return one > other if self.rule == "greater" else one < other

    def state_dict(self) -> dict[str, Any]:
        return {"wait_count": self.wait_count, "best_score": float(self.best_score)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.wait_count = state["wait_count"]
        self.best_score = state["best_score"]
