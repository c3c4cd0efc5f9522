"""MMCV's hooks that schedule the learning rate. Hookline's policies compute the values."""

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
from hookline.optim import policies, schedules


class LrUpdaterHook(ScheduleHook):
    """The base of all policies. A subclass overrides `get_lr(runner, base_lr)`."""

    initial_key = "initial_lr"
    base_lr: Any = ()
    regular_lr: Any = ()

    def get_lr(self, runner: Any, base_lr: float) -> float:
        return self.compute(base_lr, self.progress(runner), self.end(runner))

    def get_regular_lr(self, runner: Any) -> Any:
        return map_values(lambda base_lr: self.get_lr(runner, base_lr), self.base_lr)

    def get_warmup_lr(self, cur_iters: int) -> Any:
        factor = self.factor(cur_iters)
        return map_values(lambda rate: rate * factor, self.regular_lr)

    def before_run(self, runner: Any) -> None:
        self.base_lr = self.initial_values(runner)

    def current_value(self, group: dict[str, Any]) -> float:
        return float(group["lr"])

    def update_regular(self, runner: Any) -> Any:
        self.regular_lr = self.get_regular_lr(runner)
        return self.regular_lr

    def regular_values(self) -> Any:
        return self.regular_lr

    def warmup_values(self, cur_iters: int) -> Any:
        return self.get_warmup_lr(cur_iters)

    def apply(self, runner: Any, values: Any) -> None:
        self._set_lr(runner, values)

    def _set_lr(self, runner: Any, lr_groups: Any) -> None:
        for group, rate in groups_with_values(runner, lr_groups):
            group["lr"] = rate


@HOOKS.register_module()
@dataclass(eq=False)
class FixedLrUpdaterHook(LrUpdaterHook, policies.Fixed):
    """Keep the learning rate constant, except for a warm-up."""


@HOOKS.register_module()
@dataclass(eq=False)
class StepLrUpdaterHook(LrUpdaterHook, policies.StepLr):
    """Multiply the learning rate by `gamma` every `step` epochs, or at each one of a list."""


@HOOKS.register_module()
@dataclass(eq=False)
class ExpLrUpdaterHook(LrUpdaterHook, policies.Exp):
    """Multiply the learning rate by `gamma` after each epoch (or iteration)."""


@HOOKS.register_module()
@dataclass(eq=False)
class PolyLrUpdaterHook(LrUpdaterHook, policies.PolyLr):
    """Decay to `min_lr` with the remaining fraction of the run, raised to `power`."""


@HOOKS.register_module()
@dataclass(eq=False)
class InvLrUpdaterHook(LrUpdaterHook, policies.Inv):
    """Divide the learning rate by `1 + gamma * progress`, raised to `power`."""


@HOOKS.register_module()
@dataclass(eq=False)
class CosineAnnealingLrUpdaterHook(LrUpdaterHook, policies.ToMinLr, policies.Cosine):
    """Follow half a cosine wave down to the minimum."""


@HOOKS.register_module()
@dataclass(eq=False)
class LinearAnnealingLrUpdaterHook(LrUpdaterHook, policies.ToMinLr, policies.Linear):
    """Follow a straight line down to the minimum."""


@HOOKS.register_module()
@dataclass(eq=False)
class FlatCosineAnnealingLrUpdaterHook(LrUpdaterHook, policies.ToMinLr, policies.FlatCosine):
    """Keep the initial rate for `start_percent` of the run, then follow half a cosine wave down."""


@HOOKS.register_module()
@dataclass(eq=False)
class CosineRestartLrUpdaterHook(LrUpdaterHook, policies.ToMinLr, policies.CosineRestart):
    """Follow one cosine wave per period, each scaled by its one of `restart_weights`."""


@HOOKS.register_module()
@dataclass(eq=False)
class CyclicLrUpdaterHook(policies.Cyclic, LrUpdaterHook):
    """Rise to the first `target_ratio` of the initial rate and fall to the second, repeatedly."""

    by_epoch: bool = field(default=False, kw_only=False)  # MMCV's first positional parameter
    target_ratio: Any = (10, 1e-4)

    iterations_only = True

    def __post_init__(self) -> None:
        with as_parameter_error():
            super().__post_init__()


@HOOKS.register_module()
@dataclass(eq=False)
class OneCycleLrUpdaterHook(LrUpdaterHook, policies.OneCycleLr):
    """Rise from `max_lr / div_factor` to `max_lr`, then fall far below the start."""

    by_epoch: bool = field(default=False, kw_only=True)

    iterations_only = True

    def before_run(self, runner: Any) -> None:
        self.end(runner)  # Raise now if total_steps is too small.
        highest = self.parameter_values(runner, "max_lr")
        self.base_lr = map_values(lambda rate: rate / self.div_factor, highest)
        for group, rate in groups_with_values(runner, self.base_lr):
            group.setdefault("initial_lr", rate)


def annealing_cos(start: float, end: float, factor: float, weight: float = 1) -> float:
    """Follow half a cosine wave from `start` to `end`, as `factor` grows from 0 to 1."""
    return schedules.cosine(start, end, factor, weight)


def annealing_linear(start: float, end: float, factor: float) -> float:
    """Follow a straight line from `start` to `end`, as `factor` grows from 0 to 1."""
    return schedules.linear(start, end, factor)


def get_position_from_periods(iteration: int, cumulative_periods: list[int]) -> int:
    """Return the index of the period that contains an iteration."""
    for index, end in enumerate(cumulative_periods):
        if iteration < end:
            return index
    raise ValueError(f"iteration {iteration} exceeds the periods {cumulative_periods}")


def format_param(name: str, optim: Any, param: Any) -> list[Any]:
    """Return one value for each parameter group: a number, a list or a dict by optimizer."""
    count = len(optim.param_groups)
    if isinstance(param, dict):
        if name not in param:
            raise KeyError(f"{name} is not found in {param.keys()}")
        param = param[name]
    values = list(param) if isinstance(param, (list, tuple)) else [param] * count
    if len(values) != count:
        raise ValueError(f"expected {count} values for {name}, got {len(values)}")
    return values


__all__ = [
    "CosineAnnealingLrUpdaterHook",
    "CosineRestartLrUpdaterHook",
    "CyclicLrUpdaterHook",
    "ExpLrUpdaterHook",
    "FixedLrUpdaterHook",
    "FlatCosineAnnealingLrUpdaterHook",
    "InvLrUpdaterHook",
    "LinearAnnealingLrUpdaterHook",
    "LrUpdaterHook",
    "OneCycleLrUpdaterHook",
    "PolyLrUpdaterHook",
    "StepLrUpdaterHook",
    "annealing_cos",
    "annealing_linear",
    "format_param",
    "get_position_from_periods",
]
