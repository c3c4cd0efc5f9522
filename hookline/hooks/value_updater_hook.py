"""Schedule any value of the optimizers, or a number such as the weight of a loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from hookline.engine import HOOKS, BaseRunner, Priority
from hookline.errors import ConfigError
from hookline.hooks.bases.scheduled import ScheduleHook
from hookline.optim.groups import Group
from hookline.optim.value_policies import (
    POLICIES,
    check_value,
    find_attribute,
    read_value,
    write_value,
)

# Values that other hooks schedule, too, with the names that they use.
NAMES = {"lr": "learning rate", "betas[0]": "momentum"}
OWNERS = ("loss_fn.", "model.")  # beginnings of values that are attributes


@HOOKS.register()
@dataclass
class ValueUpdaterHook(ScheduleHook):
    """Set any value of the optimizers on a schedule, for all parameter groups or some.

    Parameter groups without weight decay stay without it.

    Args:
        value: Value of a parameter group, such as `lr`, `weight_decay` or `betas[1]`, or a number
            of the loss function or model, such as `loss_fn.alpha`.
        policy: Policy by name, `{type: cosine, to: 0.1}`: `fixed`, `step`, `exp`, `poly`, `inv`,
            `cosine`, `linear`, `flat_cosine`, `wsd`, `cosine_restart`, `cyclic` or `one_cycle`.
            `to_ratio` is a target as a fraction of the initial value.
        groups: Names of optimizers or parameter groups. None schedules all.
        by_epoch: Count progress in epochs. Otherwise count iterations.
        warmup: Shape of the warm-up. None has no warm-up.
        warmup_iters: Number of iterations of the warm-up.
        warmup_ratio: Factor of the value at the start of the warm-up.
        warmup_by_epoch: Count `warmup_iters` in epochs.

    Example:
        ```yaml
        hooks:
          - {type: ValueUpdaterHook, value: weight_decay, policy: {type: cosine, to: 0.1}}
        ```
    """

    value: str
    policy: dict[str, Any] | str

    priority = Priority.VERY_HIGH

    def __post_init__(self) -> None:
        try:
            self._policy = POLICIES.build(self.policy)
        except ConfigError as error:
            raise self._located(error) from error
        self.needs_end = self._policy.needs_end  # type: ignore[misc]
        super().__post_init__()
        self.hyperparameter = NAMES.get(self.value, self.value)  # type: ignore[misc]
        self.initial_key = f"initial_{self.value}"  # type: ignore[misc]
        self.is_attribute = self.value.startswith(OWNERS)
        self._initial: float | None = None  # of an attribute

    @property
    def attribute(self) -> float:
        """The current number, if the value is an attribute."""
        return float(getattr(self._target, self._attribute))

    def before_run(self, runner: BaseRunner) -> None:
        if self.is_attribute:
            self._target, self._attribute = find_attribute(runner, self.value, self.name)
            if self._initial is None:
                self._initial = self.attribute
        elif self.value == "lr" and runner.scheduler is not None:
            raise self.conflict_with("the scheduler")
        super().before_run(runner)

    def initial_values(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[float]:
        check_value(self.select_groups(optimizers), self.value, self.name, optimizers)
        return super().initial_values(optimizers)

    def select_groups(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[Group]:
        if self.is_attribute:
            return []
        return super().select_groups(optimizers)

    def update(self, runner: BaseRunner) -> None:
        super().update(runner)
        if self.is_attribute:
            assert self._initial is not None
            setattr(self._target, self._attribute, self.value_at(runner, self._initial))

    def compute(self, initial: float, progress: int, end: int) -> float:
        if self.value == "weight_decay" and initial == 0.0:
            return 0.0
        return self._policy.compute(initial, progress, end)

    def fit(self, end: int) -> int:
        try:
            return self._policy.fit(end)
        except ConfigError as error:
            raise self._located(error) from error

    def current_value(self, group: Group) -> float:
        value = read_value(group, self.value)
        assert value is not None, "checked before the run"
        return value

    def apply(self, group: Group, value: float) -> None:
        write_value(group, self.value, value)

    def _located(self, error: ConfigError) -> ConfigError:
        """Return an error of the policy as one of this hook."""
        owner = self.name or type(self).__name__
        return ConfigError(
            [replace(each.below("policy"), component=owner) for each in error.problems]
        )
