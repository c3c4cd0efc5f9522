"""Step one scheduler with the optimizer and record a representative learning rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority, state
from hookline.errors import ConfigError, Suggestion
from hookline.hooks.bases.optimizing import count_steps
from hookline.optim import SCHEDULERS
from hookline.optim.groups import by_name, learning_rates, representative_group
from hookline.optim.schedulers import (
    build_schedulers,
    check_only_stepper,
    each_scheduler,
    find_doubts,
    follows_metric,
)


@HOOKS.register()
@dataclass
class LRSchedulerHook(BaseHook):
    """Step a scheduler after every iteration and record a representative learning rate.

    With gradient accumulation, it is stepped after the last iteration of each group.

    The recorded `lr` belongs to the parameter group with the most parameters. If each group has
    just one parameter, it is the most common initial rate.

    Args:
        optimizer: Optimizer whose learning rate is scheduled. None uses the optimizer of the
            runner.
        scheduler: A scheduler or its config (`{type: …}`). None uses the scheduler of the runner.

    Attributes:
        step_rates: Learning rates of the last step.

    Example:
        ```yaml
        hooks:
          - {type: LRSchedulerHook, scheduler: {type: StepLR, step_size: 1000}}
        ```
    """

    optimizer: Any = None
    scheduler: Any = None
    step_rates: dict[str, float] = state({})

    priority = Priority.LOW
    steps_schedulers = True

    def before_run(self, runner: BaseRunner) -> None:
        check_only_stepper(self, runner.hooks)
        optimizer: Any = self.optimizer if self.optimizer is not None else runner.optimizer
        if len(by_name(optimizer)) != 1:
            advice = Suggestion(advice="pass optimizer=…, or use ParamSchedulerHook")
            message = "needs exactly one optimizer"
            raise ConfigError(
                message, component=self.name, parameter="optimizer", suggestion=advice
            )
        if self.scheduler is not None:
            self.scheduler = build_schedulers(SCHEDULERS, self.scheduler, optimizer)
            runner.scheduler = self.scheduler  # so that checkpoints hold its state
        found = list(each_scheduler(runner.scheduler))
        if len(found) != 1 or follows_metric(found[0]):
            message = "needs exactly one scheduler, stepped by iteration"
            value = found or None
            raise ConfigError(message, component=self.name, parameter="scheduler", value=value)
        self._scheduler = found[0]
        if runner.is_main:
            for doubt in find_doubts(found[0], False, None, optimizer, count_steps(runner)):
                runner.logger.warning("%s: %s", self.name, doubt)
        self._optimizer = optimizer
        self._main_group = representative_group(optimizer)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        runner.events.step_learning_rates = self.step_rates or None

    def after_forward(self, runner: BaseRunner) -> None:
        self.step_rates = learning_rates(self._optimizer, self._main_group)
        runner.events.step_learning_rates = self.step_rates

    def after_train_iter(self, runner: BaseRunner) -> None:
        runner.events.put_iteration_scalar("lr", self.step_rates["lr"], smoothed=False)
        if not runner.loop.accumulating:
            self._scheduler.step()

    def cleanup(self, runner: BaseRunner) -> None:
        runner.events.step_learning_rates = None
