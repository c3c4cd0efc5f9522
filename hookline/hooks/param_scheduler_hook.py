"""Steps the scheduler objects of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import HooklineError
from hookline.optim.groups import learning_rates
from hookline.optim.schedulers import check_only_stepper, each_scheduler, follows_metric


@HOOKS.register()
@dataclass
class ParamSchedulerHook(BaseHook):
    """Step `runner.scheduler` (one, a list, or a dict of lists): after each epoch, or each iteration where `by_epoch` is false.

    A scheduler's own `by_epoch` comes first. ReduceLROnPlateau is stepped after each validation, with the metric in its own
    `monitor`, or else in this one.
    """

    by_epoch: bool = True
    monitor: str = "val_loss"

    priority = Priority.LOW
    steps_schedulers = True

    def __post_init__(self) -> None:
        self._on_metric: list[Any] = []

    def before_run(self, runner: BaseRunner) -> None:
        check_only_stepper(self, runner.hooks)
        # Now, before a checkpoint is loaded: what a scheduler was told in the config holds.
        others = [scheduler for scheduler in each_scheduler(runner.scheduler) if not follows_metric(scheduler)]
        self._by_epoch = [scheduler for scheduler in others if getattr(scheduler, "by_epoch", self.by_epoch)]
        self._by_iter = [scheduler for scheduler in others if not getattr(scheduler, "by_epoch", self.by_epoch)]

    def before_train(self, runner: BaseRunner) -> None:
        self._on_metric = [scheduler for scheduler in each_scheduler(runner.scheduler) if follows_metric(scheduler)]
        for scheduler in self._on_metric:
            runner.evaluation.check_name(runner, self.name, getattr(scheduler, "monitor", self.monitor))

    def after_forward(self, runner: BaseRunner) -> None:
        runner.used_rates = learning_rates(runner.optimizer)  # noted before they change, so that the log shows what was used

    def after_train_iter(self, runner: BaseRunner) -> None:
        for scheduler in self._by_iter:
            scheduler.step()

    def after_train_epoch(self, runner: BaseRunner) -> None:
        for scheduler in self._by_epoch:
            scheduler.step()

    def after_val_epoch(self, runner: BaseRunner) -> None:
        if not runner.resuming:  # a validation at the start of a resumed run was counted when the run first came there
            for scheduler in self._on_metric:
                scheduler.step(self._metric(runner, scheduler))

    def cleanup(self, runner: BaseRunner) -> None:
        self._on_metric = []  # a validation outside of training changes nothing
        runner.used_rates = None

    def _metric(self, runner: BaseRunner, scheduler: Any) -> float:
        name = getattr(scheduler, "monitor", self.monitor)
        try:
            return runner.metrics[name]
        except KeyError as error:
            raise HooklineError(f"{self.name}: {type(scheduler).__name__} follows {name!r}: {error.args[0]}") from error
