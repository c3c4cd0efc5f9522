"""Save and stop a run when a time limit is reached."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hookline.duration import parse_duration
from hookline.engine import HOOKS, BaseHook, BaseRunner, StopReason


@HOOKS.register()
@dataclass
class TimeLimitHook(BaseHook):
    """Save and stop when a time limit is reached. A resumed run has the full time again.

    Args:
        limit: A duration such as `"30min"` or `"1h 30min"`, or a number of seconds.

    Example:
        ```yaml
        hooks:
          - {type: TimeLimitHook, limit: 7h 30min}
        ```
    """

    limit: str | float
    clock: Callable[[], float] = field(default=time.monotonic, init=False, repr=False)

    def __post_init__(self) -> None:
        self._seconds = parse_duration(self.limit)

    def before_run(self, runner: BaseRunner) -> None:
        self._end = self.clock() + self._seconds

    def after_train_iter(self, runner: BaseRunner) -> None:
        if self.clock() < self._end:
            return
        if runner.checkpointer.is_open:
            runner.request_save()
        details = {"limit": self._seconds}
        reason = f"reached the limit of {self.limit}"
        runner.request_stop(StopReason(reason, self.name, details))
