"""Parameter schedulers: how a learning rate or a momentum changes from step to step, each within its `begin` and `end`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hookline.compat.mmengine.optim.scheduler.base import INF, _ParamScheduler
from hookline.compat.mmengine.registry import PARAM_SCHEDULERS


@PARAM_SCHEDULERS.register_module()
class StepParamScheduler(_ParamScheduler):
    """Times `gamma` every `step_size` steps."""

    in_steps = ("step_size",)

    def __init__(self, optimizer: Any, param_name: str, step_size: int, gamma: float = 0.1, **kwargs: Any) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, param_name, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step == 0 or self.last_step % self.step_size != 0:
            return self._now()
        return [value * self.gamma for value in self._now()]


@PARAM_SCHEDULERS.register_module()
class MultiStepParamScheduler(_ParamScheduler):
    """Times `gamma` at each of the `milestones`."""

    in_steps = ("milestones",)

    def __init__(self, optimizer: Any, param_name: str, milestones: Sequence[int], gamma: float = 0.1, **kwargs: Any) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, param_name, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step not in self.milestones:
            return self._now()
        return [value * self.gamma ** self.milestones[self.last_step] for value in self._now()]


@PARAM_SCHEDULERS.register_module()
class ConstantParamScheduler(_ParamScheduler):
    """Times `factor` until the end."""

    def __init__(self, optimizer: Any, param_name: str, factor: float = 1.0 / 3, begin: int = 0, end: int = INF, **kwargs: Any) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor should between 0 and 1.")
        self.factor, self.total_iters = factor, end - begin - 1
        super().__init__(optimizer, param_name, begin=begin, end=end, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step == 0:
            return [value * self.factor for value in self._now()]
        return [value * (1.0 / self.factor) for value in self._now()] if self.last_step == self.total_iters else self._now()


@PARAM_SCHEDULERS.register_module()
class ExponentialParamScheduler(_ParamScheduler):
    """Times `gamma` at every step."""

    def __init__(self, optimizer: Any, param_name: str, gamma: float, **kwargs: Any) -> None:
        self.gamma = gamma
        super().__init__(optimizer, param_name, **kwargs)

    def _get_value(self) -> list[float]:
        return self._now() if self.last_step == 0 else [value * self.gamma for value in self._now()]


@PARAM_SCHEDULERS.register_module()
class CosineAnnealingParamScheduler(_ParamScheduler):
    """Half a cosine from the initial value down to `eta_min` (or `eta_min_ratio` of it) within `T_max` steps."""

    in_steps = ("T_max",)

    def __init__(
        self,
        optimizer: Any,
        param_name: str,
        T_max: int | None = None,
        eta_min: float | None = None,
        begin: int = 0,
        end: int = INF,
        last_step: int = -1,
        by_epoch: bool = True,
        verbose: bool = False,
        eta_min_ratio: float | None = None,
    ) -> None:
        if eta_min is not None and eta_min_ratio is not None:
            raise AssertionError("Either `eta_min` or `eta_min_ratio should be specified")
        self.T_max = T_max or end - begin
        self.eta_min = 0.0 if eta_min is None and eta_min_ratio is None else eta_min
        self.eta_min_ratio = eta_min_ratio
        super().__init__(optimizer, param_name, begin, end, last_step, by_epoch, verbose)

    def _lowest(self, base_value: float) -> float:
        return base_value * self.eta_min_ratio if self.eta_min is None else self.eta_min  # type: ignore[operator]

    def _get_value(self) -> list[float]:
        if self.last_step == 0:
            return self._now()
        pairs = [(base, self._lowest(base), value) for base, value in zip(self.base_values, self._now(), strict=True)]
        if (self.last_step - 1 - self.T_max) % (2 * self.T_max) == 0:
            return [value + (base - low) * (1 - math.cos(math.pi / self.T_max)) / 2 for base, low, value in pairs]
        share = (1 + math.cos(math.pi * self.last_step / self.T_max)) / (1 + math.cos(math.pi * (self.last_step - 1) / self.T_max))
        return [share * (value - low) + low for _, low, value in pairs]


@PARAM_SCHEDULERS.register_module()
class LinearParamScheduler(_ParamScheduler):
    """From `start_factor` to `end_factor` of the value in equal steps; a warm-up."""

    def __init__(
        self,
        optimizer: Any,
        param_name: str,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        begin: int = 0,
        end: int = INF,
        **kwargs: Any,
    ) -> None:
        if not 0 <= start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError("Starting and ending multiplicative factors should be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, end - begin - 1
        super().__init__(optimizer, param_name, begin=begin, end=end, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step == 0:
            return [value * self.start_factor for value in self._now()]
        rise = self.end_factor - self.start_factor
        factor = 1.0 + rise / (self.total_iters * self.start_factor + (self.last_step - 1) * rise)
        return [value * factor for value in self._now()]


@PARAM_SCHEDULERS.register_module()
class PolyParamScheduler(_ParamScheduler):
    """Down to `eta_min` as a polynomial."""

    def __init__(
        self, optimizer: Any, param_name: str, eta_min: float = 0, power: float = 1.0, begin: int = 0, end: int = INF, **kwargs: Any
    ) -> None:
        self.eta_min, self.power, self.total_iters = eta_min, power, end - begin - 1
        super().__init__(optimizer, param_name, begin=begin, end=end, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step == 0:
            return self._now()
        share = (1 - 1 / (self.total_iters - self.last_step + 1)) ** self.power
        return [(value - self.eta_min) * share + self.eta_min for value in self._now()]


__all__ = [
    "ConstantParamScheduler",
    "CosineAnnealingParamScheduler",
    "ExponentialParamScheduler",
    "LinearParamScheduler",
    "MultiStepParamScheduler",
    "PolyParamScheduler",
    "StepParamScheduler",
]
