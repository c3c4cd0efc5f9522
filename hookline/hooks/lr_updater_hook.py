"""Learning rate policies. The rate is a function of progress alone, so a resumed run needs no state and an edited policy holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner, Priority
from hookline.errors import ConfigError
from hookline.optim import schedules
from hookline.optim.groups import Group
from hookline.optim.scheduled import Scheduled, check_cycle, check_one_target, check_steps
from hookline.optim.schedules import Anneal


@dataclass(kw_only=True)
class LrUpdaterHook(Scheduled, BaseHook):
    """The base of all learning rate policies; a subclass defines `value(base, at, end)`."""

    priority = Priority.VERY_HIGH
    key = "initial_lr"

    def before_run(self, runner: BaseRunner) -> None:
        rival = next((hook.name for hook in runner.hooks if isinstance(hook, LrUpdaterHook) and hook is not self), None)
        rival = "the scheduler" if rival is None and runner.scheduler is not None else rival
        if rival is not None:
            raise ConfigError(f"{self.name} and {rival} both set the learning rate: remove one")
        super().before_run(runner)

    def initial(self, group: Group) -> float:
        return float(group["lr"])

    def put(self, group: Group, value: float) -> None:
        group["lr"] = value


@dataclass(kw_only=True)
class _TowardsMinimum(LrUpdaterHook):
    """Policies that end at `min_lr`, or at `min_lr_ratio` of the initial rate."""

    min_lr: float | None = None
    min_lr_ratio: float | None = None

    needs_end = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_target(self, "min_lr", self.min_lr, self.min_lr_ratio)

    def target(self, base: float) -> float:
        return self.min_lr if self.min_lr_ratio is None else base * self.min_lr_ratio  # type: ignore[return-value]


@HOOKS.register()
@dataclass
class FixedLrUpdaterHook(LrUpdaterHook):
    """Keep the learning rate, apart from a warm-up."""

    def value(self, base: float, at: int, end: int) -> float:
        return base


@HOOKS.register()
@dataclass
class StepLrUpdaterHook(LrUpdaterHook):
    """Multiply the learning rate with `gamma` every `step` epochs, or at each one of a list; never below `min_lr`."""

    step: int | list[int]
    gamma: float = 0.1
    min_lr: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_steps(self, self.step)

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.step(base, at, self.step, self.gamma, self.min_lr)


@HOOKS.register()
@dataclass
class ExpLrUpdaterHook(LrUpdaterHook):
    """Multiply the learning rate with `gamma` each epoch (or iteration)."""

    gamma: float

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.exponential(base, at, self.gamma)


@HOOKS.register()
@dataclass
class PolyLrUpdaterHook(LrUpdaterHook):
    """Fall to `min_lr` at the end of the run, as the remaining part of it to the power of `power`."""

    power: float = 1.0
    min_lr: float = 0.0

    needs_end = True

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.poly(base, at, end, self.power, self.min_lr)


@HOOKS.register()
@dataclass
class InvLrUpdaterHook(LrUpdaterHook):
    """Divide the learning rate by `1 + gamma * progress`, to the power of `power`."""

    gamma: float
    power: float = 1.0

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.inverse(base, at, self.gamma, self.power)


@HOOKS.register()
@dataclass
class CosineAnnealingLrUpdaterHook(_TowardsMinimum):
    """Half a cosine wave down to `min_lr`, or to `min_lr_ratio` of the initial rate."""

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.cosine(base, self.target(base), min(at / end, 1.0))


@HOOKS.register()
@dataclass
class LinearAnnealingLrUpdaterHook(_TowardsMinimum):
    """A straight line down to `min_lr`, or to `min_lr_ratio` of the initial rate."""

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.linear(base, self.target(base), min(at / end, 1.0))


@HOOKS.register()
@dataclass
class FlatCosineAnnealingLrUpdaterHook(_TowardsMinimum):
    """The initial rate for the first `start_percent` of the run, then half a cosine wave down."""

    start_percent: float = 0.75

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.start_percent <= 1:
            raise ValueError(f"{type(self).__name__}: start_percent must lie between 0 and 1, got {self.start_percent}")

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.flat_cosine(base, self.target(base), at, end, self.start_percent)


@HOOKS.register()
@dataclass
class CosineRestartLrUpdaterHook(_TowardsMinimum):
    """Half a cosine wave in each of `periods`, which starts at the initial rate times its one of `restart_weights`."""

    periods: list[int]
    restart_weights: list[float] = field(default_factory=lambda: [1.0])

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.periods or min(self.periods) < 1 or len(self.periods) != len(self.restart_weights):
            raise ValueError(
                f"{type(self).__name__}: periods must be numbers of at least 1, and restart_weights as many, "
                f"got {self.periods} and {self.restart_weights}"
            )

    def before_train(self, runner: BaseRunner) -> None:
        super().before_train(runner)
        if sum(self.periods) < self._end:
            raise ConfigError(f"{self.name}: the periods end after {sum(self.periods)}, the run only after {self._end}")

    def value(self, base: float, at: int, end: int) -> float:
        return schedules.cosine_restart(base, self.target(base), at, self.periods, self.restart_weights)


@HOOKS.register()
@dataclass
class CyclicLrUpdaterHook(LrUpdaterHook):
    """`cyclic_times` cycles: up to the first `target_ratio` of the initial rate, down to the second, peaks falling with `gamma`."""

    by_epoch: bool = field(default=False, kw_only=True)
    target_ratio: float | list[float] = field(default_factory=lambda: [10, 1e-4])
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
class OneCycleLrUpdaterHook(LrUpdaterHook):
    """From `max_lr / div_factor` up to `max_lr`, then down to the `final_div_factor`-th part of where it began.

    `max_lr` is one number, a list with one for each parameter group, or a mapping with one for each optimizer's name.
    """

    max_lr: float | list[float] | dict[str, Any]
    total_steps: int | None = None
    pct_start: float = 0.3
    anneal_strategy: Anneal = "cos"
    div_factor: float = 25.0
    final_div_factor: float = 1e4
    three_phase: bool = False
    by_epoch: bool = field(default=False, kw_only=True)

    needs_end = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.pct_start <= 1:
            raise ValueError(f"{type(self).__name__}: pct_start must lie between 0 and 1, got {self.pct_start}")

    def before_train(self, runner: BaseRunner) -> None:
        super().before_train(runner)
        if self.total_steps is not None and self.total_steps < self._end:
            raise ConfigError(f"{self.name}: total_steps is {self.total_steps}, but the run goes on to {self._end}")
        self._end = self.total_steps or self._end

    def bases(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[float]:
        rates: list[float] = []
        for name, optimizer in optimizers.items():
            given = self.max_lr.get(name) if isinstance(self.max_lr, dict) else self.max_lr
            each = given if isinstance(given, list) else [given] * len(optimizer.param_groups)
            if len(each) != len(optimizer.param_groups) or None in each:
                groups = f"{len(optimizer.param_groups)} parameter groups{f' of {name!r}' if name else ''}"
                raise ConfigError(f"{self.name}: max_lr {self.max_lr!r} does not fit the {groups}")
            rates += [float(rate) / self.div_factor for rate in each]  # type: ignore[arg-type]
        return rates

    def value(self, base: float, at: int, end: int) -> float:
        final = base / self.final_div_factor
        return schedules.one_cycle(base, base * self.div_factor, final, at, end, self.pct_start, self.anneal_strategy, self.three_phase)
