"""Hooks that schedule the learning rate, one class per policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from hookline.engine import HOOKS, BaseRunner, Priority
from hookline.hooks.bases.scheduled import ScheduleHook
from hookline.optim import policies
from hookline.optim.groups import Group, values_per_group


@dataclass(kw_only=True)
class LrUpdaterHook(ScheduleHook):
    """Base of the learning rate schedules.

    A subclass defines `compute(initial, progress, end)`.

    Args:
        by_epoch: Count progress in epochs. Otherwise count iterations.
        warmup: Shape of the warm-up. None has no warm-up.
        warmup_iters: Number of iterations of the warm-up.
        warmup_ratio: Factor of the value at the start of the warm-up.
        warmup_by_epoch: Count `warmup_iters` in epochs.
        groups: Names of optimizers or parameter groups. None schedules all.
    """

    priority = Priority.VERY_HIGH
    hyperparameter = "learning rate"
    initial_key = "initial_lr"

    def before_run(self, runner: BaseRunner) -> None:
        super().before_run(runner)
        if runner.scheduler is not None:
            raise self.conflict_with("the scheduler")

    def current_value(self, group: Group) -> float:
        return float(group["lr"])

    def apply(self, group: Group, value: float) -> None:
        group["lr"] = value


@HOOKS.register()
@dataclass
class FixedLrUpdaterHook(policies.Fixed, LrUpdaterHook):
    """Keep the learning rate, apart from a warm-up.

    Example:
        ```yaml
        hooks:
          - {type: FixedLrUpdaterHook, warmup: linear, warmup_iters: 500}
        ```
    """


@HOOKS.register()
@dataclass
class StepLrUpdaterHook(policies.StepLr, LrUpdaterHook):
    """Multiply the learning rate by a factor at regular steps, or at given ones.

    Args:
        step: Number of epochs (or iterations) between two steps, or a list of epochs (or
            iterations).
        gamma: Factor of each step.
        min_lr: Lower limit of the learning rate.

    Example:
        ```yaml
        hooks:
          - {type: StepLrUpdaterHook, step: [30, 60, 90], gamma: 0.1}
        ```
    """


@HOOKS.register()
@dataclass
class ExpLrUpdaterHook(policies.Exp, LrUpdaterHook):
    """Multiply the learning rate by a factor after each epoch (or iteration).

    Args:
        gamma: Factor of each epoch (or iteration).

    Example:
        ```yaml
        hooks:
          - {type: ExpLrUpdaterHook, gamma: 0.95}
        ```
    """


@HOOKS.register()
@dataclass
class PolyLrUpdaterHook(policies.PolyLr, LrUpdaterHook):
    """Decay the learning rate as a power of the remaining part of the run.

    Args:
        power: Exponent of the remaining part.
        min_lr: Final learning rate.

    Example:
        ```yaml
        hooks:
          - {type: PolyLrUpdaterHook, power: 0.9, min_lr: 0.0001, by_epoch: false}
        ```
    """


@HOOKS.register()
@dataclass
class InvLrUpdaterHook(policies.Inv, LrUpdaterHook):
    """Divide the learning rate by `(1 + gamma * progress) ** power`.

    Args:
        gamma: Factor of the progress.
        power: Exponent of the divisor.

    Example:
        ```yaml
        hooks:
          - {type: InvLrUpdaterHook, gamma: 0.1, power: 0.75}
        ```
    """


@HOOKS.register()
@dataclass
class CosineAnnealingLrUpdaterHook(policies.ToMinLr, policies.Cosine, LrUpdaterHook):
    """Decay the learning rate along half a cosine wave.

    Example:
        ```yaml
        hooks:
          - type: CosineAnnealingLrUpdaterHook
            min_lr: 0.0
            warmup: linear
            warmup_iters: 500
            by_epoch: false
        ```
    """


@HOOKS.register()
@dataclass
class LinearAnnealingLrUpdaterHook(policies.ToMinLr, policies.Linear, LrUpdaterHook):
    """Decay the learning rate along a straight line.

    Example:
        ```yaml
        hooks:
          - {type: LinearAnnealingLrUpdaterHook, min_lr_ratio: 0.01}
        ```
    """


@HOOKS.register()
@dataclass
class FlatCosineAnnealingLrUpdaterHook(policies.ToMinLr, policies.FlatCosine, LrUpdaterHook):
    """Keep the initial learning rate, then decay it along half a cosine wave.

    Args:
        start_percent: Fraction of the run before the decay, from 0 to 1.

    Example:
        ```yaml
        hooks:
          - {type: FlatCosineAnnealingLrUpdaterHook, start_percent: 0.75, min_lr: 0.0}
        ```
    """


@HOOKS.register()
@dataclass
class WSDLrUpdaterHook(policies.ToMinLr, policies.StableDecay, LrUpdaterHook):
    """Warm up, keep the learning rate, and lower it in the last part of the run.

    Args:
        decay_ratio: Part of the run in which the rate falls, from 0 to 1.
        decay_shape: `linear`, `cosine`, or `sqrt` for `1 - sqrt` of the way.

    Example:
        ```yaml
        hooks:
          - type: WSDLrUpdaterHook
            warmup: linear
            warmup_iters: 100
            decay_ratio: 0.2
            min_lr: 0.0
            by_epoch: false
        ```
    """


@HOOKS.register()
@dataclass
class CosineRestartLrUpdaterHook(policies.ToMinLr, policies.CosineRestart, LrUpdaterHook):
    """Decay the learning rate along half a cosine wave, several times with restarts.

    Args:
        periods: Lengths of the waves, in epochs (or iterations).
        restart_weights: First value of each wave, as a fraction of the initial learning rate.

    Example:
        ```yaml
        hooks:
          - type: CosineRestartLrUpdaterHook
            periods: [20, 30, 50]
            restart_weights: [1.0, 0.5, 0.25]
            min_lr: 0.0
        ```
    """


@HOOKS.register()
@dataclass
class CyclicLrUpdaterHook(policies.Cyclic, LrUpdaterHook):
    """Raise and lower the learning rate in cycles.

    Args:
        target_ratio: Highest and lowest value of a cycle, as multiples of the initial rate.
        cyclic_times: Number of cycles in the run.
        step_ratio_up: Part of a cycle that leads to the first target, from 0 to 1.
        anneal_strategy: `cos` moves along half a cosine wave, `linear` along a straight line.
        gamma: Factor by which each peak is closer to the initial rate than the one before. 1 keeps
            the height of the peaks.

    Example:
        ```yaml
        hooks:
          - {type: CyclicLrUpdaterHook, target_ratio: [10, 0.0001], cyclic_times: 2, gamma: 0.5}
        ```
    """

    by_epoch: bool = field(default=False, kw_only=True)
    target_ratio: float | list[float] = field(default_factory=lambda: [10, 1e-4])


@HOOKS.register()
@dataclass
class OneCycleLrUpdaterHook(policies.OneCycleLr, LrUpdaterHook):
    """Raise the learning rate to a maximum, then lower it far below its first value.

    Args:
        max_lr: Highest learning rate: a number, a list with one for each parameter group, or a
            mapping with one for each optimizer.
        total_steps: Length of the cycle. None uses the length of the run.
        pct_start: Part of the run in which the rate rises, from 0 to 1.
        anneal_strategy: `cos` moves along half a cosine wave, `linear` along a straight line.
        div_factor: The first value is `max_lr / div_factor`.
        final_div_factor: The last value is the first one divided by this.
        three_phase: Return to the first value before the last phase.

    Example:
        ```yaml
        hooks:
          - {type: OneCycleLrUpdaterHook, max_lr: 0.1, pct_start: 0.3}
        ```
    """

    by_epoch: bool = field(default=False, kw_only=True)

    def initial_values(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[float]:
        initial = {}
        for name, optimizer in optimizers.items():
            rates = values_per_group(self, "max_lr", name, optimizer)
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                initial[id(group)] = rate / self.div_factor
        return [initial[id(group)] for group in self.select_groups(optimizers)]
