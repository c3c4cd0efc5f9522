"""How long training takes, and when it will be over."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner


@HOOKS.register()
@dataclass
class TimeTrackingHook(BaseHook):
    """Report every `frequency` epochs how long the epoch took, the time trained so far, and when training will be over.

    With `log_to_file` the lines also go to `log_path`, which is relative to the work directory. Validation and saving are
    part of the time. Time trained before a resume is counted; the prediction rests on what this process has seen.
    """

    frequency: int = 1
    log_to_file: bool = True
    log_path: str = "time_tracking.log"

    ranks = "main"

    def __post_init__(self) -> None:
        if self.frequency < 1:
            raise ValueError(f"TimeTrackingHook: frequency must be at least 1, got {self.frequency}")
        if not self.log_path:
            raise ValueError("TimeTrackingHook: log_path must name a file")
        self._before = 0.0  # seconds trained before this process
        self._started: float | None = None

    def before_train(self, runner: BaseRunner) -> None:
        self._started = time.perf_counter()
        self._first = runner.epoch, runner.iter

    def before_epoch(self, runner: BaseRunner) -> None:
        self._epoch_started = time.perf_counter()

    def after_epoch(self, runner: BaseRunner) -> None:
        seconds, elapsed, remaining = time.perf_counter() - self._epoch_started, self._elapsed(), self._remaining(runner)
        scalars = {"time/epoch": seconds, "time/elapsed": elapsed, **({} if remaining is None else {"time/remaining": remaining})}
        runner.events.put_scalars(scalars, smoothing_hint=False)
        line = f"epoch {runner.epoch + 1}/{runner.max_epochs or '?'} took {_readable(seconds)}, {_readable(elapsed)} so far"
        if remaining:
            end = datetime.now() + timedelta(seconds=remaining)
            line += f", {_readable(remaining)} to go, done about {end:%Y-%m-%d %H:%M:%S}"
        self._log(runner, line)

    def after_train(self, runner: BaseRunner) -> None:
        self._log(runner, f"training took {_readable(self._elapsed())} for {runner.iter} iterations")

    def cleanup(self, runner: BaseRunner) -> None:
        if self._started is not None:
            self._before, self._started = self._elapsed(), None

    def state_dict(self) -> dict[str, Any]:
        return {"seconds": self._elapsed()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._before = state["seconds"]

    def _elapsed(self) -> float:
        return self._before + (0.0 if self._started is None else time.perf_counter() - self._started)

    def _remaining(self, runner: BaseRunner) -> float | None:
        """Seconds to the end at the pace so far, by iterations if their number is known."""
        epoch, iteration = self._first
        if runner.max_iters is not None:
            done, left = runner.iter - iteration, runner.max_iters - runner.iter
        elif runner.max_epochs is not None:
            done, left = runner.epoch + 1 - epoch, runner.max_epochs - runner.epoch - 1
        else:
            done = left = 0
        if not done or self._started is None:
            return None
        return (time.perf_counter() - self._started) / done * left

    def _log(self, runner: BaseRunner, line: str) -> None:
        runner.logger.info("%s: %s", self.name, line)
        if self.log_to_file:
            path = runner.work_dir / self.log_path
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now():%Y-%m-%d %H:%M:%S} {line}\n")


def _readable(seconds: float) -> str:
    """`12.3 s` or `1:02:03`."""
    return f"{seconds:.1f} s" if seconds < 60 else str(timedelta(seconds=round(seconds)))
