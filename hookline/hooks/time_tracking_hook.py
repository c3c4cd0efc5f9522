"""Log the time of each epoch, the total time and the estimated end of training."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.errors import parameter_error, require_at_least
from hookline.files import open_to_append

DATE_FORMAT = "%Y-%m-%d %H:%M:%S"


@HOOKS.register()
@dataclass
class TimeTrackingHook(BaseHook):
    """Log the time of each epoch, the total time and the estimated end of training.

    Validation and saving are part of the time. The total includes time before a resume. The
    estimate uses only the current process.

    Args:
        frequency: Number of epochs between two log lines.
        log_to_file: Write the lines to `log_path`, too.
        log_path: File for the lines, relative to the work directory.

    State:
        The checkpoint holds the seconds trained so far.

    Example:
        ```yaml
        hooks:
          - {type: TimeTrackingHook, frequency: 1, log_path: time_tracking.log}
        ```
    """

    frequency: int = 1
    log_to_file: bool = True
    log_path: str = "time_tracking.log"
    clock: Callable[[], float] = field(default=time.perf_counter, init=False, repr=False)

    ranks = "main"

    def __post_init__(self) -> None:
        require_at_least(self, 1, "frequency")
        if not self.log_path:
            raise parameter_error(self, "log_path", "must name a file")
        self._before = 0.0  # Seconds trained by earlier processes and calls of `train`.
        self._started: float | None = None

    def before_train(self, runner: BaseRunner) -> None:
        self._started = self.clock()
        self._first_epoch = runner.epoch
        self._first_iter = runner.iter

    def before_epoch(self, runner: BaseRunner) -> None:
        self._epoch_started = self.clock()

    def after_epoch(self, runner: BaseRunner) -> None:
        seconds = self.clock() - self._epoch_started
        elapsed = self._elapsed()
        remaining = self._remaining(runner)
        scalars = {"time/epoch": seconds, "time/elapsed": elapsed}
        if remaining is not None:
            scalars["time/remaining"] = remaining
        runner.events.put_scalars(scalars, smoothing_hint=False)
        now = datetime.now()
        line = (
            f"epoch {runner.epoch + 1}/{runner.max_epochs or '?'} took {_readable(seconds)}, "
            f"{_readable(elapsed)} so far"
        )
        if remaining:
            end = now + timedelta(seconds=remaining)
            line += f", {_readable(remaining)} to go, done about {end:{DATE_FORMAT}}"
        self._log(runner, line, now)

    def after_train(self, runner: BaseRunner) -> None:
        line = f"training took {_readable(self._elapsed())} for {runner.iter} iterations"
        self._log(runner, line, datetime.now())

    def cleanup(self, runner: BaseRunner) -> None:
        self._before = self._elapsed()
        self._started = None

    def state_dict(self) -> dict[str, Any]:
        return {"seconds": self._elapsed()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._before = state["seconds"]

    def _elapsed(self) -> float:
        if self._started is None:
            return self._before
        return self._before + self.clock() - self._started

    def _remaining(self, runner: BaseRunner) -> float | None:
        """Extrapolate the pace so far, by iterations if their number is known."""
        done = left = 0
        if runner.max_iters is not None:
            done = runner.iter - self._first_iter
            left = runner.max_iters - runner.iter
        elif runner.max_epochs is not None:
            done = runner.epoch + 1 - self._first_epoch
            left = runner.max_epochs - runner.epoch - 1
        if not done or self._started is None:
            return None
        return (self.clock() - self._started) / done * left

    def _log(self, runner: BaseRunner, line: str, now: datetime) -> None:
        runner.logger.info("%s: %s", self.name, line)
        if self.log_to_file:
            path = runner.work_dir / self.log_path
            with open_to_append(path) as file:
                file.write(f"{now:{DATE_FORMAT}} {line}\n")


def _readable(seconds: float) -> str:
    """Format seconds as `12.3 s` or `1:02:03`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return str(timedelta(seconds=round(seconds)))
