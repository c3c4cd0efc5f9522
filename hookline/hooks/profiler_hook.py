"""How long iterations take."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority


@HOOKS.register()
@dataclass
class IterTimerHook(BaseHook):
    """Record `time` (a whole iteration) and `data_time` (waiting for its batch); every `interval` iterations also the ETA.

    Validation and saving between two iterations are not counted as waiting for data.
    """

    interval: int = 50
    log_eta: bool = True

    priority = Priority.LOW

    def __post_init__(self) -> None:
        if self.interval < 1:
            raise ValueError(f"IterTimerHook: interval must be at least 1, got {self.interval}")

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._asked = time.perf_counter()

    def before_train_iter(self, runner: BaseRunner) -> None:
        self._got = time.perf_counter()

    def after_train_iter(self, runner: BaseRunner) -> None:
        now = time.perf_counter()
        events = runner.events
        events.put_scalar("time", now - self._asked)
        events.put_scalar("data_time", self._got - self._asked)
        if self.log_eta and runner.max_iters is not None and self.every_n_iters(runner, self.interval):
            mean = events.means(self.interval)["time"]
            events.put_scalar("eta", mean * (runner.max_iters - runner.iter - 1), smoothing_hint=False)
        self._asked = now

    def after_val(self, runner: BaseRunner) -> None:
        self._asked = time.perf_counter()

    def after_save_checkpoint(self, runner: BaseRunner) -> None:
        self._asked = time.perf_counter()
