"""Momentum policies, the counterparts of the learning rate's: they act on `momentum`, or on the first of `betas`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import ConfigError
from hookline.optim import schedules
from hookline.optim.groups import Group, momentum_of, param_groups, set_momentum
from hookline.optim.scheduled import Scheduled, check_cycle, check_one_target, check_steps
from hookline.optim.schedules import Anneal


@dataclass(kw_only=True)
class MomentumUpdaterHook(Scheduled, BaseHook):
    """The base of all momentum policies; a subclass defines `value(base, at, end)`. A warm-up divides by its ratio."""

    priority = Priority.HIGH
    key = "initial_momentum"

    def before_run(self, runner: BaseRunner) -> None:
        rival = next((hook.name for hook in runner.hooks if isinstance(hook, MomentumUpdaterHook) and hook is not self), None)
        if rival is not None:
            raise ConfigError(f"{self.name} and {rival} both set the momentum: remove one")
        if any(momentum_of(group) is None for group in param_groups(runner.optimizer)):
            raise ConfigError(f"{self.name}: an optimizer here has neither 'momentum' nor 'betas'")
        super().before_run(runner)

    def initial(self, group: Group) -> float:
        return momentum_of(group)  # type: ignore[return-value]  # checked before the run

    def put(self, group: Group, value: float) -> None:
        set_momentum(group, value)

    def warmed(self, value: float, factor: float) -> float:
        return value / factor  # momentum is high where the learning rate is low


@dataclass(kw_only=True)
class _TowardsMinimum(MomentumUpdaterHook):
    """Policies that end at `min_momentum`, or at `min_momentum_ratio` of the initial one."""

    min_momentum: float | None = None
    min_momentum_ratio: float | None = None

    needs_end = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_target(self, "min_momentum", self.min_momentum, self.min_momentum_ratio)

    def target(self, base: float) -> float:
        return self.min_momentum if self.min_momentum_ratio is None else base * self.min_momentum_ratio  # type: ignore[return-value]


@HOOKS.register()
@dataclass
class StepMomentumUpdaterHook(MomentumUpdaterHook):
    """Multiply momentum with `gamma` every `step` epochs, or at each one of a list; never below `min_momentum`."""

    step: int | list[int]
    gamma: float = 0.5
    min_momentum: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_steps(self, self.step)

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.step(base, at, self.step, self.gamma, self.min_momentum)


@HOOKS.register()
@dataclass
class CosineAnnealingMomentumUpdaterHook(_TowardsMinimum):
    """Half a cosine wave to `min_momentum`, or to `min_momentum_ratio` of the initial momentum."""

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.cosine(base, self.target(base), min(at / end, 1.0))


@HOOKS.register()
@dataclass
class LinearAnnealingMomentumUpdaterHook(_TowardsMinimum):
    """A straight line to `min_momentum`, or to `min_momentum_ratio` of the initial momentum."""

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.linear(base, self.target(base), min(at / end, 1.0))


@HOOKS.register()
@dataclass
class CyclicMomentumUpdaterHook(MomentumUpdaterHook):
    """`cyclic_times` cycles: to the first `target_ratio` of the initial momentum, then to the second."""

    by_epoch: bool = field(default=False, kw_only=True)
    target_ratio: float | list[float] = field(default_factory=lambda: [0.85 / 0.95, 1])
    cyclic_times: int = 1
    step_ratio_up: float = 0.4
    anneal_strategy: Anneal = "cos"
    gamma: float = 1.0

    needs_end = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ratios = check_cycle(self, self.target_ratio, self.cyclic_times, self.step_ratio_up, self.gamma)

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.cyclic(base, at, end, self._ratios, self.cyclic_times, self.step_ratio_up, self.gamma, self.anneal_strategy)


@HOOKS.register()
@dataclass
class OneCycleMomentumUpdaterHook(MomentumUpdaterHook):
    """From `max_momentum` down to `base_momentum` while OneCycleLrUpdaterHook goes up, and back while that goes down."""

    base_momentum: float = 0.85
    max_momentum: float = 0.95
    pct_start: float = 0.3
    anneal_strategy: Anneal = "cos"
    three_phase: bool = False
    by_epoch: bool = field(default=False, kw_only=True)

    needs_end = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.pct_start <= 1:
            raise ValueError(f"{type(self).__name__}: pct_start must lie between 0 and 1, got {self.pct_start}")

    def bases(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[float]:
        return [self.max_momentum for optimizer in optimizers.values() for _ in optimizer.param_groups]

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.one_cycle(base, self.base_momentum, base, at, end, self.pct_start, self.anneal_strategy, self.three_phase)
