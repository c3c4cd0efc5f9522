"""One scheduler, stepped every iteration, and the learning rate that stands for all groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import ConfigError
from hookline.optim import SCHEDULERS
from hookline.optim.groups import by_name, learning_rates, representative_group
from hookline.optim.schedulers import build_schedulers, check_only_stepper, each_scheduler, follows_metric


@HOOKS.register()
@dataclass
class LRSchedulerHook(BaseHook):
    """Step a scheduler after every iteration, and record as `lr` the rate of the group with most parameters.

    `optimizer` and `scheduler` (an object or `{type: …}`) are the runner's if they are not given. If each group has just one
    parameter, the most common initial rate is recorded.
    """

    optimizer: Any = None
    scheduler: Any = None

    priority = Priority.LOW
    steps_schedulers = True

    def before_run(self, runner: BaseRunner) -> None:
        check_only_stepper(self, runner.hooks)
        optimizer: Any = self.optimizer if self.optimizer is not None else runner.optimizer
        if len(by_name(optimizer)) != 1:
            raise ConfigError(f"{self.name} is for one optimizer: pass optimizer=…, or use ParamSchedulerHook")
        if self.scheduler is not None:  # the runner's from now on, so that its state is in the checkpoint
            runner.scheduler = self.scheduler = build_schedulers(SCHEDULERS, self.scheduler, optimizer)
        found = list(each_scheduler(runner.scheduler))
        if len(found) != 1 or follows_metric(found[0]):
            raise ConfigError(f"{self.name} needs one scheduler that is stepped by iteration, got {found or None}")
        self._scheduler, self._optimizer = found[0], optimizer
        self._best_group = representative_group(optimizer)

    def after_forward(self, runner: BaseRunner) -> None:
        runner.used_rates = learning_rates(self._optimizer, self._best_group)

    def after_train_iter(self, runner: BaseRunner) -> None:
        runner.events.put_scalar("lr", runner.used_rates["lr"], smoothing_hint=False)  # type: ignore[index]
        self._scheduler.step()

    def cleanup(self, runner: BaseRunner) -> None:
        runner.used_rates = None
