"""MMCV's hooks that schedule the learning rate. Hookline's policies compute the values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hookline.compat.mmcv.runner.hooks.hook import HOOKS
from hookline.compat.mmcv.runner.hooks.scheduled import (
    ScheduleHook,
    groups_with_values,
    map_values,
)
from hookline.optim import policies


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
class FixedLrUpdaterHook(policies.Fixed, LrUpdaterHook):
    """Keep the learning rate constant, except for a warm-up."""


@HOOKS.register_module()
@dataclass(eq=False)
class StepLrUpdaterHook(policies.StepLr, LrUpdaterHook):
    """Multiply the learning rate by `gamma` every `step` epochs, or at each one of a list."""


@HOOKS.register_module()
@dataclass(eq=False)
class ExpLrUpdaterHook(policies.Exp, LrUpdaterHook):
    """Multiply the learning rate by `gamma` after each epoch (or iteration)."""


@HOOKS.register_module()
@dataclass(eq=False)
class PolyLrUpdaterHook(policies.PolyLr, LrUpdaterHook):
    """Decay to `min_lr` with the remaining fraction of the run, raised to `power`."""


@HOOKS.register_module()
@dataclass(eq=False)
class InvLrUpdaterHook(policies.Inv, LrUpdaterHook):
    """Divide the learning rate by `1 + gamma * progress`, raised to `power`."""


@HOOKS.register_module()
@dataclass(eq=False)
class CosineAnnealingLrUpdaterHook(policies.ToMinLr, policies.Cosine, LrUpdaterHook):
    """Follow half a cosine wave down to the minimum."""


@HOOKS.register_module()
@dataclass(eq=False)
class LinearAnnealingLrUpdaterHook(policies.ToMinLr, policies.Linear, LrUpdaterHook):
    """Follow a straight line down to the minimum."""


@HOOKS.register_module()
@dataclass(eq=False)
class FlatCosineAnnealingLrUpdaterHook(policies.ToMinLr, policies.FlatCosine, LrUpdaterHook):
    """Keep the initial rate for `start_percent` of the run, then follow half a cosine wave down."""


@HOOKS.register_module()
@dataclass(eq=False)
class CosineRestartLrUpdaterHook(policies.ToMinLr, policies.CosineRestart, LrUpdaterHook):
    """Follow one cosine wave per period, each scaled by its one of `restart_weights`."""


@HOOKS.register_module()
@dataclass(eq=False)
class CyclicLrUpdaterHook(policies.Cyclic, LrUpdaterHook):
    """Rise to the first `target_ratio` of the initial rate and fall to the second, repeatedly."""

    by_epoch: bool = field(default=False, kw_only=False)  # MMCV's first positional parameter
    target_ratio: Any = (10, 1e-4)

    iterations_only = True


@HOOKS.register_module()
@dataclass(eq=False)
class OneCycleLrUpdaterHook(policies.OneCycleLr, LrUpdaterHook):
    """Rise from `max_lr / div_factor` to `max_lr`, then fall far below the start."""

    by_epoch: bool = field(default=False, kw_only=True)

    iterations_only = True

    def before_run(self, runner: Any) -> None:
        self.end(runner)  # Raise now if total_steps is too small.
        highest = self.parameter_values(runner, "max_lr")
        self.base_lr = map_values(lambda rate: rate / self.div_factor, highest)
        for group, rate in groups_with_values(runner, self.base_lr):
            group.setdefault("initial_lr", rate)
