"""Ending in time, before someone else ends the run."""

from __future__ import annotations

import time
from dataclasses import dataclass

from hookline.duration import parse_duration
from hookline.engine import HOOKS, BaseHook, BaseRunner


@HOOKS.register()
@dataclass
class TimeLimitHook(BaseHook):
    """Save and stop after `limit`: `"30min"`, `"1h 30min"` or seconds. A resumed run has the whole time again."""

    limit: str | float

    def __post_init__(self) -> None:
        self._seconds = parse_duration(self.limit)

    def before_run(self, runner: BaseRunner) -> None:
        self._end = time.monotonic() + self._seconds

    def after_train_iter(self, runner: BaseRunner) -> None:
        if time.monotonic() >= self._end:
            if runner.saver is not None:
                runner.request_save()
            runner.request_stop(f"{self.name}: the limit of {self.limit} is over")
