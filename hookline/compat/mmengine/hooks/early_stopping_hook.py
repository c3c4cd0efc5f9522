"""Stopping when a metric no longer improves. Its patience survives a resume."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import inf, isfinite
from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.hooks.rules import infer_rule
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class EarlyStoppingHook(Hook):
    """Stop after `patience` validations in which `monitor` did not improve by `min_delta`."""

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
        self.monitor, self.rule = monitor, infer_rule(monitor, rule)
        self.min_delta = min_delta if self.rule == "greater" else -min_delta
        self.strict, self.check_finite, self.patience, self.stopping_threshold = strict, check_finite, patience, stopping_threshold
        self.wait_count = 0
        self.best_score = -inf if self.rule == "greater" else inf

    def before_run(self, runner: Any) -> None:
        if not hasattr(runner.train_loop, "stop_training"):
            raise AssertionError("`train_loop` should contain `stop_training` variable.")

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        if self.monitor not in (metrics or {}):
            if self.strict:
                raise RuntimeError(f"Early stopping conditioned on metric `{self.monitor}`, which is not among {metrics}")
            warnings.warn(f"no early stopping: {self.monitor} is not among the metrics {list(metrics or {})}", stacklevel=2)
            return
        stop, message = self._check_stop_condition((metrics or {})[self.monitor])
        if stop:
            runner.train_loop.stop_training = True
            runner.logger.info(message)

    def _check_stop_condition(self, current_score: float) -> tuple[bool, str]:
        if self.check_finite and not isfinite(current_score):
            return True, f"Monitored metric {self.monitor} = {current_score} is infinite. Previous best value was {self.best_score:.3f}."
        if self.stopping_threshold is not None and self._better(current_score, self.stopping_threshold):
            self.best_score = current_score
            return True, f"Stopping threshold reached: `{self.monitor}` = {current_score} is {self.rule} than {self.stopping_threshold}."
        if self._better(self.best_score + self.min_delta, current_score):
            self.wait_count += 1
            message = f"the monitored metric did not improve in the last {self.wait_count} records. best score: {self.best_score:.3f}. "
            return self.wait_count >= self.patience, message
        self.best_score, self.wait_count = current_score, 0
        return False, ""

    def _better(self, one: float, other: float) -> bool:
        return one > other if self.rule == "greater" else one < other

    def state_dict(self) -> dict[str, Any]:
        return {"wait_count": self.wait_count, "best_score": float(self.best_score)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.wait_count, self.best_score = state["wait_count"], state["best_score"]
