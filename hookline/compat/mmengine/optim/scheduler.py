"""Schedulers of the learning rate.

Each one computes a rate from the one before, as MMEngine does: several of them may change the same
rate, and the results are the same to the last bit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hookline.compat.mmengine.registry import PARAM_SCHEDULERS

INF = int(1e9)


class _ParamScheduler:
    """The base of schedulers, which are active between the steps `begin` and `end`.

    A subclass implements `_next`, which returns the rate of a group at `last_step`.
    """

    def __init__(
        self, optimizer: Any, begin: int = 0, end: int = INF, by_epoch: bool = True
    ) -> None:
        if end <= begin:
            raise ValueError(f"end should be larger than begin, but got begin={begin}, end={end}")
        self.optimizer = optimizer
        self.begin = begin
        self.end = end
        self.by_epoch = by_epoch
        self.total_iters = end - begin - 1
        self.last_step = -1
        self.base_values = []
        for group in optimizer.param_groups:
            self.base_values.append(group.setdefault("initial_lr", group["lr"]))
        self._global_step = -1
        self.step()

    def step(self) -> None:
        """Count a step, and set the rates if it lies between `begin` and `end`."""
        self._global_step += 1
        groups = self.optimizer.param_groups
        if self.begin <= self._global_step < self.end:
            self.last_step += 1
            for group, base in zip(groups, self.base_values, strict=True):
                group["lr"] = self._next(group["lr"], base)
        self._last_value = [group["lr"] for group in groups]

    def get_last_value(self) -> list[float]:
        return self._last_value

    def state_dict(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        vars(self).update(state_dict)

    def _next(self, value: float, base: float) -> float:
        raise NotImplementedError(f"{type(self).__name__} must implement _next")


@PARAM_SCHEDULERS.register_module()
class LinearLR(_ParamScheduler):
    """Move from `start_factor` to `end_factor` of the rate in equal steps: a warm-up."""

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        **kwargs: Any,
    ) -> None:
        self.start_factor = start_factor
        self.end_factor = end_factor
        super().__init__(optimizer, **kwargs)

    def _next(self, value: float, base: float) -> float:
        if self.last_step == 0:
            return value * self.start_factor
        rise = self.end_factor - self.start_factor
        previous = self.total_iters * self.start_factor + (self.last_step - 1) * rise
        return value * (1.0 + rise / previous)


@PARAM_SCHEDULERS.register_module()
class StepLR(_ParamScheduler):
    """Multiply by `gamma` every `step_size` steps."""

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, **kwargs: Any) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, **kwargs)

    def _next(self, value: float, base: float) -> float:
        if self.last_step == 0 or self.last_step % self.step_size != 0:
            return value
        return value * self.gamma


@PARAM_SCHEDULERS.register_module()
class MultiStepLR(_ParamScheduler):
    """Multiply by `gamma` at each of the `milestones`."""

    def __init__(
        self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, **kwargs: Any
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, **kwargs)

    def _next(self, value: float, base: float) -> float:
        if self.last_step not in self.milestones:
            return value
        return float(value * self.gamma ** self.milestones[self.last_step])


@PARAM_SCHEDULERS.register_module()
class CosineAnnealingLR(_ParamScheduler):
    """Follow half a cosine wave down to `eta_min` within `T_max` steps, then up again."""

    def __init__(
        self,
        optimizer: Any,
        T_max: int | None = None,
        eta_min: float = 0.0,
        **kwargs: Any,
    ) -> None:
        self.eta_min = eta_min
        super().__init__(optimizer, **kwargs)
        self.T_max = T_max or self.end - self.begin

    def _next(self, value: float, base: float) -> float:
        if self.last_step == 0:
            return value
        before = 1 + math.cos(math.pi * (self.last_step - 1) / self.T_max)
        if (self.last_step - 1 - self.T_max) % (2 * self.T_max) == 0:
            # The rate is at its minimum, from which a factor cannot lead away.
            return value + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        factor = (1 + math.cos(math.pi * self.last_step / self.T_max)) / before
        return factor * (value - self.eta_min) + self.eta_min
