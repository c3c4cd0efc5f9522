"""Stop training at a given epoch or iteration."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner, StopReason
from hookline.errors import ConfigError


@HOOKS.register()
@dataclass
class StopAtHook(BaseHook):
    """Save and stop after a given epoch or iteration.

    Schedules still use the full length of the run.

    Args:
        epoch: Last epoch, counted from 1. Give either this or `iter`.
        iter: Last iteration, counted from 1. Give either this or `epoch`.

    Example:
        ```yaml
        hooks:
          - {type: StopAtHook, epoch: 10}
        ```
    """

    epoch: int | None = None
    iter: int | None = None

    ranks = "collective"

    def __post_init__(self) -> None:
        given = [value for value in (self.epoch, self.iter) if value is not None]
        if len(given) != 1 or given[0] < 1:
            parameter = "iter" if self.epoch is None else "epoch"
            message = "set exactly one of 'epoch' and 'iter', to at least 1"
            value = {"epoch": self.epoch, "iter": self.iter}
            raise ConfigError(message, component="StopAtHook", parameter=parameter, value=value)
        self.disable_sites("after_train_epoch" if self.epoch is None else "after_train_iter")

    def after_train_epoch(self, runner: BaseRunner) -> None:
        if runner.epoch + 1 == self.epoch:
            self._stop(runner, "epoch", self.epoch)

    def after_train_iter(self, runner: BaseRunner) -> None:
        if runner.iter + 1 == self.iter:
            self._stop(runner, "iter", self.iter)

    def _stop(self, runner: BaseRunner, unit: str, number: int) -> None:
        if runner.checkpointer.is_open:
            runner.request_save(collective=True)
        reason = f"reached {unit} {number}"
        runner.request_stop(StopReason(reason, self.name, {unit: number}), collective=True)
