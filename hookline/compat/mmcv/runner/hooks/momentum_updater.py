"""MMCV's hooks that schedule the momentum: `momentum`, or the first of `betas`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hookline.compat.mmcv.errors import as_parameter_error
from hookline.compat.mmcv.runner.hooks.hook import HOOKS
from hookline.compat.mmcv.runner.hooks.scheduled import (
    ScheduleHook,
    groups_with_values,
    map_values,
)
from hookline.errors import ConfigError
from hookline.optim import policies, schedules
from hookline.optim.groups import momentum_of, set_momentum


@dataclass(kw_only=True, init=False, eq=False)
class MomentumUpdaterHook(ScheduleHook):
    """The base of all policies. A subclass overrides `get_momentum(runner, base_momentum)`.

    A warm-up divides by its factor: the momentum is high while the learning rate is low.
    """

    warmup_ratio: float = 0.9

    initial_key = "initial_momentum"
    base_momentum = ()
    regular_momentum = ()

    def __init__(
        self,
        by_epoch: bool = True,
        warmup: str | None = None,
        warmup_iters: int = 0,
        warmup_ratio: float = 0.9,
        warmup_by_epoch: bool = False,
    ) -> None:
        super().__init__(by_epoch, warmup, warmup_iters, warmup_ratio, warmup_by_epoch)

    def get_momentum(self, runner: Any, base_momentum: float) -> float:
        return self.compute(base_momentum, self.progress(runner), self.end(runner))

    def get_regular_momentum(self, runner: Any) -> Any:
        return map_values(lambda base: self.get_momentum(runner, base), self.base_momentum)

    def get_warmup_momentum(self, cur_iters: int) -> Any:
        factor = self.factor(cur_iters)
        return map_values(lambda momentum: momentum / factor, self.regular_momentum)

    def before_run(self, runner: Any) -> None:
        self.base_momentum = self.initial_values(runner)

    def current_value(self, group: dict[str, Any]) -> float:
        momentum = momentum_of(group)
        if momentum is None:
            message = "the optimizer has neither 'momentum' nor 'betas'"
            raise ConfigError(message, component=type(self).__name__)
        return momentum

    def update_regular(self, runner: Any) -> Any:
        self.regular_momentum = self.get_regular_momentum(runner)
        return self.regular_momentum

    def regular_values(self) -> Any:
        return self.regular_momentum

    def warmup_values(self, cur_iters: int) -> Any:
        return self.get_warmup_momentum(cur_iters)

    def apply(self, runner: Any, values: Any) -> None:
        self._set_momentum(runner, values)

    def _set_momentum(self, runner: Any, momentum_groups: Any) -> None:
        for group, momentum in groups_with_values(runner, momentum_groups):
            set_momentum(group, momentum)


@HOOKS.register_module()
@dataclass(eq=False)
class StepMomentumUpdaterHook(MomentumUpdaterHook, policies.StepMomentum):
    """Multiply the momentum by `gamma` every `step` epochs, or at each one of a list."""


@HOOKS.register_module()
@dataclass(eq=False)
class CosineAnnealingMomentumUpdaterHook(
    MomentumUpdaterHook, policies.ToMinMomentum, policies.Cosine
):
    """Follow half a cosine wave to the minimum."""


@HOOKS.register_module()
@dataclass(eq=False)
class LinearAnnealingMomentumUpdaterHook(
    MomentumUpdaterHook, policies.ToMinMomentum, policies.Linear
):
    """Follow a straight line to the minimum."""


@HOOKS.register_module()
@dataclass(eq=False)
class CyclicMomentumUpdaterHook(policies.Cyclic, MomentumUpdaterHook):
    """Move to the first `target_ratio` of the initial momentum and to the second, repeatedly."""

    by_epoch: bool = field(default=False, kw_only=False)  # MMCV's first positional parameter
    target_ratio: Any = (0.85 / 0.95, 1)

    iterations_only = True

    def __post_init__(self) -> None:
        with as_parameter_error():
            super().__post_init__()


@HOOKS.register_module()
@dataclass(eq=False)
class OneCycleMomentumUpdaterHook(MomentumUpdaterHook, policies.OneCycleMomentum):
    """Fall from `max_momentum` to `base_momentum` while the learning rate rises, then return.

    Both take one number, a list with one for each parameter group, or a dict by optimizer. During
    a run `base_momentum` holds, for each group, the lowest and the highest momentum.
    """

    base_momentum: Any = 0.85
    max_momentum: Any = 0.95
    by_epoch: bool = field(default=False, kw_only=True)

    iterations_only = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lowest = self.base_momentum

    def before_run(self, runner: Any) -> None:
        lows = self.parameter_values(runner, "lowest")
        highs = self.parameter_values(runner, "max_momentum")
        if isinstance(lows, dict):
            self.base_momentum = {
                name: list(zip(lows[name], highs[name], strict=True)) for name in lows
            }
        else:
            self.base_momentum = list(zip(lows, highs, strict=True))

    def get_momentum(self, runner: Any, base_momentum: Any) -> float:
        low, high = base_momentum
        return schedules.one_cycle(
            high,
            low,
            high,
            runner.iter,
            self.end(runner),
            self.pct_start,
            self.anneal_strategy,
            self.three_phase,
        )
