"""Step the scheduler objects of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import HooklineError
from hookline.hooks.bases.optimizing import count_steps
from hookline.optim.groups import learning_rates
from hookline.optim.schedulers import (
    check_only_stepper,
    check_unit,
    each_scheduler,
    find_doubts,
    follows_metric,
)


@HOOKS.register()
@dataclass
class ParamSchedulerHook(BaseHook):
    """Step the schedulers of the runner after each epoch or optimizer step.

    `runner.scheduler` is one scheduler, a list, or a mapping of lists. A scheduler with a
    `by_epoch` attribute decides for itself. `ReduceLROnPlateau` is stepped after each validation.
    Runs with a `scheduler` have this hook automatically, unless another hook steps the scheduler.

    Args:
        by_epoch: Step after each epoch. Otherwise step after each step of the optimizer, which with
            gradient accumulation comes after several iterations.
        monitor: Metric for `ReduceLROnPlateau`, unless the scheduler has a `monitor` attribute.

    Attributes:
        step_rates: Learning rates of the last step.

    Example:
        ```yaml
        hooks:
          - {type: ParamSchedulerHook, by_epoch: true, monitor: val_loss}
        ```
    """

    by_epoch: bool = True
    monitor: str = "val_loss"
    step_rates: dict[str, float] = state({})

    priority = Priority.LOW
    steps_schedulers = True
    adds_metrics = False

    def __post_init__(self) -> None:
        self._by_epoch: list[Any] = []
        self._by_step: list[Any] = []
        self._by_metric: list[Any] = []

    def before_run(self, runner: BaseRunner) -> None:
        check_only_stepper(self, runner.hooks)
        self._by_epoch = []
        self._by_step = []
        # Read `by_epoch` now: a checkpoint that is loaded later overwrites the configured value.
        for scheduler in each_scheduler(runner.scheduler):
            by_epoch = getattr(scheduler, "by_epoch", self.by_epoch)
            self._warn(runner, scheduler, by_epoch)
            if follows_metric(scheduler):
                runner.best.require(self.name, "monitor", self._monitor_of(scheduler))
                continue
            check_unit(self.name, scheduler, by_epoch, runner.max_epochs, runner.optimizer)
            (self._by_epoch if by_epoch else self._by_step).append(scheduler)

    def before_train(self, runner: BaseRunner) -> None:
        self._by_metric = []
        for scheduler in each_scheduler(runner.scheduler):
            if follows_metric(scheduler):
                self._by_metric.append(scheduler)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        runner.events.step_learning_rates = self.step_rates or None

    def after_forward(self, runner: BaseRunner) -> None:
        # Before a scheduler changes them: the log shows the rates of this step.
        self.step_rates = learning_rates(runner.optimizer)
        runner.events.step_learning_rates = self.step_rates

    def after_optimizer_step(self, runner: BaseRunner) -> None:
        for scheduler in self._by_step:
            scheduler.step()

    def after_train_epoch(self, runner: BaseRunner) -> None:
        for scheduler in self._by_epoch:
            scheduler.step()

    def after_val_epoch(self, runner: BaseRunner) -> None:
        if runner.loop.resuming:  # This validation was counted before the checkpoint was written.
            return
        for scheduler in self._by_metric:
            scheduler.step(self._metric(runner, scheduler))

    def cleanup(self, runner: BaseRunner) -> None:
        self._by_metric = []  # A validation outside training must not step.
        runner.events.step_learning_rates = None

    def _warn(self, runner: BaseRunner, scheduler: Any, by_epoch: bool) -> None:
        if runner.is_main:
            lengths = (runner.max_epochs, runner.optimizer, count_steps(runner))
            for doubt in find_doubts(scheduler, by_epoch, *lengths):
                runner.logger.warning("%s: %s", self.name, doubt)

    def _monitor_of(self, scheduler: Any) -> str:
        return str(getattr(scheduler, "monitor", self.monitor))

    def _metric(self, runner: BaseRunner, scheduler: Any) -> float:
        name = self._monitor_of(scheduler)
        try:
            return runner.metrics[name]
        except KeyError as error:
            raise HooklineError(
                f"{type(scheduler).__name__} follows {name!r}: {error.args[0]}",
                component=self.name,
                parameter="monitor",
            ) from error
