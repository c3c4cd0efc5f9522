"""Hooks that schedule the momentum, one class per policy: `momentum`, or the first of `betas`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from hookline.engine import HOOKS, BaseRunner, Priority
from hookline.errors import ConfigError, Suggestion
from hookline.hooks.bases.scheduled import ScheduleHook
from hookline.optim import policies
from hookline.optim.groups import Group, by_name, describe_group, momentum_of, set_momentum


@dataclass(kw_only=True)
class MomentumUpdaterHook(ScheduleHook):
    """Base of the momentum schedules, which set `momentum` or the first of `betas`.

    A subclass defines `compute(initial, progress, end)`.

    Args:
        by_epoch: Count progress in epochs. Otherwise count iterations.
        warmup: Shape of the warm-up. None has no warm-up.
        warmup_iters: Number of iterations of the warm-up.
        warmup_ratio: Divisor of the value at the start of the warm-up.
        warmup_by_epoch: Count `warmup_iters` in epochs.
        groups: Names of optimizers or parameter groups. None schedules all.
    """

    warmup_ratio: float = 0.9  # A momentum must not grow far beyond 1.

    priority = Priority.HIGH
    hyperparameter = "momentum"
    initial_key = "initial_momentum"

    def before_run(self, runner: BaseRunner) -> None:
        optimizers = by_name(runner.optimizer)
        for group in self.select_groups(optimizers):
            if momentum_of(group) is None:
                found = describe_group(group, optimizers)
                message = f"{found} has neither 'momentum' nor 'betas'"
                advice = Suggestion(advice="choose other groups with 'groups'")
                raise ConfigError(
                    message, component=self.name, parameter="groups", suggestion=advice
                )
        super().before_run(runner)

    def current_value(self, group: Group) -> float:
        momentum = momentum_of(group)
        assert momentum is not None, "checked before the run"
        return momentum

    def apply(self, group: Group, value: float) -> None:
        set_momentum(group, value)

    def apply_warmup(self, value: float, factor: float) -> float:
        return value / factor


@HOOKS.register()
@dataclass
class StepMomentumUpdaterHook(policies.StepMomentum, MomentumUpdaterHook):
    """Multiply the momentum by a factor at regular steps, or at given ones.

    Args:
        step: Number of epochs (or iterations) between two steps, or a list of epochs (or
            iterations).
        gamma: Factor of each step.
        min_momentum: Lower limit of the momentum.

    Example:
        ```yaml
        hooks:
          - {type: StepMomentumUpdaterHook, step: [30, 60], gamma: 0.5}
        ```
    """


@HOOKS.register()
@dataclass
class CosineAnnealingMomentumUpdaterHook(
    policies.ToMinMomentum, policies.Cosine, MomentumUpdaterHook
):
    """Lower the momentum along half a cosine wave.

    Example:
        ```yaml
        hooks:
          - {type: CosineAnnealingMomentumUpdaterHook, min_momentum: 0.5}
        ```
    """


@HOOKS.register()
@dataclass
class LinearAnnealingMomentumUpdaterHook(
    policies.ToMinMomentum, policies.Linear, MomentumUpdaterHook
):
    """Lower the momentum along a straight line.

    Example:
        ```yaml
        hooks:
          - {type: LinearAnnealingMomentumUpdaterHook, min_momentum: 0.5}
        ```
    """


@HOOKS.register()
@dataclass
class CyclicMomentumUpdaterHook(policies.Cyclic, MomentumUpdaterHook):
    """Lower and raise the momentum in cycles.

    Args:
        target_ratio: The two values between which a cycle moves, as multiples of the initial
            momentum.
        cyclic_times: Number of cycles in the run.
        step_ratio_up: Part of a cycle that leads to the first target, from 0 to 1.
        anneal_strategy: `cos` moves along half a cosine wave, `linear` along a straight line.
        gamma: Factor by which each turning point is closer to the initial momentum than the one
            before. 1 keeps their distance.

    Example:
        ```yaml
        hooks:
          - {type: CyclicMomentumUpdaterHook, target_ratio: [0.9, 1], cyclic_times: 2}
        ```
    """

    by_epoch: bool = field(default=False, kw_only=True)
    target_ratio: float | list[float] = field(default_factory=lambda: [0.85 / 0.95, 1])


@HOOKS.register()
@dataclass
class OneCycleMomentumUpdaterHook(policies.OneCycleMomentum, MomentumUpdaterHook):
    """Lower the momentum while the learning rate rises, then raise it again.

    It is the counterpart of OneCycleLrUpdaterHook.

    Args:
        base_momentum: Lowest momentum, when the learning rate is highest.
        max_momentum: Momentum at the start and at the end.
        pct_start: Part of the run in which the momentum falls, from 0 to 1.
        anneal_strategy: `cos` moves along half a cosine wave, `linear` along a straight line.
        three_phase: Return to the first value before the last phase.

    Example:
        ```yaml
        hooks:
          - type: OneCycleMomentumUpdaterHook
            base_momentum: 0.85
            max_momentum: 0.95
            pct_start: 0.3
        ```
    """

    by_epoch: bool = field(default=False, kw_only=True)

    def initial_values(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[float]:
        return [self.max_momentum] * len(self.select_groups(optimizers))
