"""What all schedules share: when a value is computed, warm-up, and where its initial value comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from hookline.errors import ConfigError
from hookline.optim.groups import Group, by_name, param_groups
from hookline.optim.schedules import Warmup, warmup_factor


@dataclass(kw_only=True)
class Scheduled:
    """A value of each parameter group, set before the iteration that uses it, from the run's progress alone.

    Subclasses say with `value` what it is. With `by_epoch` progress is counted in epochs, else in iterations. `warmup` starts
    at `warmup_ratio` of the value and lasts `warmup_iters` iterations (epochs with `warmup_by_epoch`).
    """

    by_epoch: bool = True
    warmup: Warmup | None = None
    warmup_iters: int = 0
    warmup_ratio: float = 0.1
    warmup_by_epoch: bool = False

    key: ClassVar[str]  # the group's key of the initial value
    needs_end: ClassVar[bool] = False  # whether `value` looks at the length of the run

    def __post_init__(self) -> None:
        name = type(self).__name__
        if self.warmup is not None and self.warmup_iters < 1:
            raise ValueError(f"{name}: warmup needs warmup_iters of at least 1, got {self.warmup_iters}")
        if not 0 < self.warmup_ratio <= 1:
            raise ValueError(f"{name}: warmup_ratio must lie above 0 and not above 1, got {self.warmup_ratio}")
        if self.warmup is None and self.warmup_iters:
            raise ValueError(f"{name}: warmup_iters is {self.warmup_iters}, but warmup does not say how: constant, linear or exp")
        idle = ["before_train_epoch"] if not self.by_epoch else ["before_train_iter"] if self.warmup is None else []
        self.leave_alone(*idle)

    def value(self, base: float, at: int, end: int) -> float:
        """The value at a point of the run, counted in epochs or iterations; `base` is the group's initial value."""
        raise NotImplementedError(f"{type(self).__name__} has no 'value'")

    def before_run(self, runner: Any) -> None:
        self._bases = self.bases(by_name(runner.optimizer))  # now, before a checkpoint is loaded over them

    def after_load_checkpoint(self, runner: Any) -> None:
        """The initial values of the config hold, not those of a checkpoint: an edited one takes effect."""
        for group, base in zip(param_groups(runner.optimizer), self._bases, strict=True):
            group[self.key] = base

    def before_train(self, runner: Any) -> None:
        """Check that the schedule fits the run."""
        name = type(self).__name__
        self._optimizers = list(by_name(runner.optimizer).values())
        self.after_load_checkpoint(runner)
        self._end = (runner.max_epochs if self.by_epoch else runner.max_iters) or 0
        if not self._end and self.needs_end:
            unit = "epochs" if self.by_epoch else "iterations"
            raise ConfigError(f"{name} needs to know how many {unit} the run has, and the train_loader has no length to tell it")
        if self.warmup_by_epoch and runner.epoch_length is None:
            raise ConfigError(f"{name}: warmup_by_epoch needs a train_loader with a length; give warmup_iters in iterations")
        unit_length = runner.epoch_length if self.warmup_by_epoch else 1
        self._warmup_end = 0 if self.warmup is None else self.warmup_iters * unit_length

    def before_train_epoch(self, runner: Any) -> None:
        self.update(runner)

    def before_train_iter(self, runner: Any) -> None:
        if not self.by_epoch or runner.iter <= self._warmup_end:
            self.update(runner)

    def update(self, runner: Any) -> None:
        """Set the values for the coming iteration."""
        at, end, key = runner.epoch if self.by_epoch else runner.iter, self._end, self.key
        factor = None
        if runner.iter < self._warmup_end:
            factor = warmup_factor(self.warmup, runner.iter, self._warmup_end, self.warmup_ratio)  # type: ignore[arg-type]
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:  # read each time: a hook may add a group, loading a state replaces them all
                base = group[key] if key in group else group.setdefault(key, self.initial(group))
                value = self.value(base, at, end)
                self.put(group, value if factor is None else self.warmed(value, factor))

    # What a schedule of the learning rate and one of momentum have of their own.

    def initial(self, group: Group) -> float:
        """The value of a group that was never scheduled."""
        raise NotImplementedError

    def bases(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[float]:
        """The initial value of each group of all optimizers."""
        return [group.get(self.key, self.initial(group)) for optimizer in optimizers.values() for group in optimizer.param_groups]

    def put(self, group: Group, value: float) -> None:
        raise NotImplementedError

    def warmed(self, value: float, factor: float) -> float:
        return value * factor

    def leave_alone(self, *sites: str) -> None:
        """That of hooks."""
        super().leave_alone(*sites)  # type: ignore[misc]


def check_steps(owner: object, steps: int | list[int]) -> None:
    """ValueError unless steps are a length, or places in ascending order."""
    places = [steps] if isinstance(steps, int) else list(steps)
    if not places or min(places) < 1 or places != sorted(places):
        raise ValueError(f"{type(owner).__name__}: step must be a number of at least 1 or a list of such in ascending order, got {steps!r}")


def check_cycle(owner: object, target_ratio: float | Sequence[float], times: int, up: float, gamma: float) -> list[float]:
    """The two ratios of a cycle; ValueError for what makes no cycle."""
    name = type(owner).__name__
    ratios = list(target_ratio) if isinstance(target_ratio, Sequence) else [target_ratio]
    if len(ratios) not in (1, 2):
        raise ValueError(f"{name}: target_ratio must be one number or two, got {target_ratio!r}")
    if times < 1 or not 0 <= up < 1 or not 0 < gamma <= 1:
        raise ValueError(
            f"{name}: cyclic_times must be at least 1, step_ratio_up lie in [0, 1) and gamma in (0, 1], got {times}, {up} and {gamma}"
        )
    return ratios if len(ratios) == 2 else [ratios[0], ratios[0] / 1e5]


def check_one_target(owner: object, name: str, least: float | None, ratio: float | None) -> None:
    """ValueError unless exactly one of `min_…` and `min_…_ratio` is given."""
    if (least is None) == (ratio is None):
        raise ValueError(
            f"{type(owner).__name__}: give exactly one of {name} and {name}_ratio, got {'neither' if least is None else 'both'}"
        )
