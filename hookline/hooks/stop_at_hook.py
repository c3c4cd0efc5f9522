"""Ending earlier than planned, at a place known beforehand."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner


@HOOKS.register()
@dataclass
class StopAtHook(BaseHook):
    """Save and stop after an epoch or an iteration, while schedules still reckon with the whole length of the run."""

    epoch: int | None = None
    iter: int | None = None

    ranks = "collective"

    def __post_init__(self) -> None:
        given = [value for value in (self.epoch, self.iter) if value is not None]
        if len(given) != 1 or given[0] < 1:
            raise ValueError(f"StopAtHook: give one of epoch and iter, at least 1; got {self.epoch} and {self.iter}")
        self.leave_alone("after_train_epoch" if self.epoch is None else "after_train_iter")

    def after_train_epoch(self, runner: BaseRunner) -> None:
        if runner.epoch + 1 == self.epoch:
            self._stop(runner, f"epoch {self.epoch}")

    def after_train_iter(self, runner: BaseRunner) -> None:
        if runner.iter + 1 == self.iter:
            self._stop(runner, f"iteration {self.iter}")

    def _stop(self, runner: BaseRunner, place: str) -> None:
        if runner.saver is not None:
            runner.request_save()
        runner.request_stop(f"{self.name}: {place} is over")
