"""Base class of hooks that schedule a hyperparameter of the optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch

from hookline.engine import BaseHook, BaseRunner
from hookline.errors import ConfigError, parameter_error
from hookline.optim.groups import Group, by_name, choose_groups
from hookline.optim.policies import Policy, check_warmup
from hookline.optim.schedules import Warmup, warmup_factor


@dataclass(kw_only=True)
class ScheduleHook(Policy, BaseHook):
    """Base of hooks that set a hyperparameter of each parameter group before an iteration.

    The value depends only on the progress of the run. A resumed run therefore needs no state, and
    an edited schedule takes effect on resume. A subclass implements `compute`, or inherits a
    policy.

    Args:
        by_epoch: Whether progress counts epochs; otherwise it counts iterations.
        warmup: The shape of the warm-up; None for no warm-up.
        warmup_iters: The length of the warm-up in iterations, or epochs with `warmup_by_epoch`.
        warmup_ratio: The factor with which the warm-up starts.
        warmup_by_epoch: Whether `warmup_iters` counts epochs.
        groups: Names of optimizers or parameter groups; None for all.
    """

    by_epoch: bool = True
    warmup: Warmup | None = None
    warmup_iters: int = 0
    warmup_ratio: float = 0.1
    warmup_by_epoch: bool = False
    groups: list[str] | None = None

    hyperparameter: ClassVar[str]  # its name in messages
    initial_key: ClassVar[str]  # the key of a parameter group that holds the initial value

    def __post_init__(self) -> None:
        super().__post_init__()
        check_warmup(self)
        if self.warmup is None and self.warmup_iters:
            raise parameter_error(self, "warmup_iters", "needs a 'warmup': constant, linear or exp")
        if self.by_epoch and self.warmup is None and not self.needs_end:
            self.disable_sites("before_train_iter")

    def current_value(self, group: Group) -> float:
        """Return the hyperparameter of a parameter group."""
        raise NotImplementedError

    def apply(self, group: Group, value: float) -> None:
        """Set the hyperparameter of a parameter group."""
        raise NotImplementedError

    def apply_warmup(self, value: float, factor: float) -> float:
        """Return the value during the warm-up."""
        return value * factor

    def select_groups(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[Group]:
        """Return the parameter groups that are scheduled."""
        if self.groups is None:
            return [group for each in optimizers.values() for group in each.param_groups]
        return choose_groups(optimizers, self.groups, self.name)

    def initial_values(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[float]:
        """Return the initial value of each scheduled parameter group."""
        groups = self.select_groups(optimizers)
        return [group.get(self.initial_key, self.current_value(group)) for group in groups]

    def before_run(self, runner: BaseRunner) -> None:
        optimizers = by_name(runner.optimizer)
        own = {id(group) for group in self.select_groups(optimizers)}
        for hook in runner.hooks:
            if hook is self or not isinstance(hook, ScheduleHook):
                continue
            if hook.hyperparameter != self.hyperparameter:
                continue
            if own.intersection(id(group) for group in hook.select_groups(optimizers)):
                raise self.conflict_with(hook.name)
        # Read the initial values now: a checkpoint that is loaded later overwrites them.
        self._initial_values = self.initial_values(optimizers)

    def after_load_checkpoint(self, runner: BaseRunner) -> None:
        """Restore the configured initial values, so that an edited config takes effect."""
        groups = self.select_groups(by_name(runner.optimizer))
        for group, initial in zip(groups, self._initial_values, strict=True):
            group[self.initial_key] = initial

    def before_train(self, runner: BaseRunner) -> None:
        self._optimizers = by_name(runner.optimizer)
        self.after_load_checkpoint(runner)
        self._read_lengths(runner)
        self._begins_epoch = False

    def before_train_epoch(self, runner: BaseRunner) -> None:
        self._begins_epoch = True
        if self.by_epoch:
            self.update(runner)

    def before_train_iter(self, runner: BaseRunner) -> None:
        is_changed = False
        if self._begins_epoch:
            # Other hooks of before_train_epoch may have replaced the training data.
            self._begins_epoch = False
            before = self._end
            self._read_lengths(runner)
            is_changed = self._end != before
        if is_changed or not self.by_epoch or runner.iter <= self._warmup_end:
            self.update(runner)

    def update(self, runner: BaseRunner) -> None:
        """Set the values for the next iteration."""
        # Read the groups each time: a hook may add one, and loading a state replaces them all.
        for group in self.select_groups(self._optimizers):
            if self.initial_key not in group:
                group[self.initial_key] = self.current_value(group)
            self.apply(group, self.value_at(runner, group[self.initial_key]))

    def value_at(self, runner: BaseRunner, initial: float) -> float:
        """Return the value for the next iteration, warm-up included."""
        progress = runner.epoch if self.by_epoch else runner.iter
        value = self.compute(initial, progress, self._end)
        if self.warmup is None or runner.iter >= self._warmup_end:
            return value
        factor = warmup_factor(self.warmup, runner.iter, self._warmup_end, self.warmup_ratio)
        return self.apply_warmup(value, factor)

    def conflict_with(self, other: str) -> ConfigError:
        """Return the error for a second owner of the hyperparameter."""
        message = f"{other} sets the {self.hyperparameter} too; remove one of the two"
        return ConfigError(message, component=self.name)

    def _read_lengths(self, runner: BaseRunner) -> None:
        """Take the length of the run, and that of the warm-up, from the current training data."""
        self._end = self._schedule_length(runner)
        self._warmup_end = 0
        if self.warmup is not None:
            self._warmup_end = self.warmup_iters * self._warmup_unit(runner)

    def _schedule_length(self, runner: BaseRunner) -> int:
        length = runner.max_epochs if self.by_epoch else runner.max_iters
        if length is None and self.needs_end:
            unit = "epochs" if self.by_epoch else "iterations"
            message = f"the number of {unit} is unknown, because train_loader has no length"
            raise ConfigError(message, component=self.name, parameter="by_epoch")
        return self.fit(length or 0)

    def _warmup_unit(self, runner: BaseRunner) -> int:
        if not self.warmup_by_epoch:
            return 1
        if runner.epoch_length is None:
            expected = "needs a train_loader with a length; give warmup_iters in iterations"
            raise parameter_error(self, "warmup_by_epoch", expected)
        return runner.epoch_length
