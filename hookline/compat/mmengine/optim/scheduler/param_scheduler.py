"""MMEngine's parameter schedulers, each for any parameter of an optimizer.

Most of them compute a value from the one before, as MMEngine does: several schedulers may change
the same parameter, and the results are the same to the last bit.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from hookline.compat.mmengine.optim.scheduler.base import INF, _ParamScheduler
from hookline.compat.mmengine.registry import PARAM_SCHEDULERS
from hookline.optim.policies import resolve_target
from hookline.optim.schedules import locate_period, one_cycle


@PARAM_SCHEDULERS.register_module()
class StepParamScheduler(_ParamScheduler):
    """Multiply by `gamma` every `step_size` steps."""

    in_steps = ("step_size",)

    def __init__(
        self, optimizer: Any, param_name: str, step_size: int, gamma: float = 0.1, **kwargs: Any
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, param_name, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step == 0 or self.last_step % self.step_size != 0:
            return self._current_values()
        return self._scale_current(self.gamma)


@PARAM_SCHEDULERS.register_module()
class MultiStepParamScheduler(_ParamScheduler):
    """Multiply by `gamma` at each of the `milestones`."""

    in_steps = ("milestones",)

    def __init__(
        self,
        optimizer: Any,
        param_name: str,
        milestones: Sequence[int],
        gamma: float = 0.1,
        **kwargs: Any,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, param_name, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step not in self.milestones:
            return self._current_values()
        return self._scale_current(self.gamma ** self.milestones[self.last_step])


@PARAM_SCHEDULERS.register_module()
class ConstantParamScheduler(_ParamScheduler):
    """Multiply by `factor` until the end."""

    def __init__(
        self,
        optimizer: Any,
        param_name: str,
        factor: float = 1.0 / 3,
        begin: int = 0,
        end: int = INF,
        **kwargs: Any,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor should between 0 and 1.")
        self.factor = factor
        self.total_iters = end - begin - 1
        super().__init__(optimizer, param_name, begin=begin, end=end, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step == 0:
            return self._scale_current(self.factor)
        if self.last_step == self.total_iters:
            return self._scale_current(1.0 / self.factor)
        return self._current_values()


@PARAM_SCHEDULERS.register_module()
class ExponentialParamScheduler(_ParamScheduler):
    """Multiply by `gamma` at every step."""

    def __init__(self, optimizer: Any, param_name: str, gamma: float, **kwargs: Any) -> None:
        self.gamma = gamma
        super().__init__(optimizer, param_name, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step == 0:
            return self._current_values()
        return self._scale_current(self.gamma)


@PARAM_SCHEDULERS.register_module()
class LinearParamScheduler(_ParamScheduler):
    """Move from `start_factor` to `end_factor` of the value in equal steps: a warm-up."""

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
            raise ValueError(
                "Starting and ending multiplicative factors should be between 0 and 1."
            )
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = end - begin - 1
        super().__init__(optimizer, param_name, begin=begin, end=end, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step == 0:
            return self._scale_current(self.start_factor)
        rise = self.end_factor - self.start_factor
        previous = self.total_iters * self.start_factor + (self.last_step - 1) * rise
        return self._scale_current(1.0 + rise / previous)


@PARAM_SCHEDULERS.register_module()
class PolyParamScheduler(_ParamScheduler):
    """Decay to `eta_min` as a polynomial."""

    def __init__(
        self,
        optimizer: Any,
        param_name: str,
        eta_min: float = 0,
        power: float = 1.0,
        begin: int = 0,
        end: int = INF,
        **kwargs: Any,
    ) -> None:
        self.eta_min = eta_min
        self.power = power
        self.total_iters = end - begin - 1
        super().__init__(optimizer, param_name, begin=begin, end=end, **kwargs)

    def _get_value(self) -> list[float]:
        if self.last_step == 0:
            return self._current_values()
        factor = (1 - 1 / (self.total_iters - self.last_step + 1)) ** self.power
        return [(value - self.eta_min) * factor + self.eta_min for value in self._current_values()]


class _CosineScheduler(_ParamScheduler):
    """The base of cosine schedulers, which end at `eta_min` or a share of the base value."""

    eta_min: float | None
    eta_min_ratio: float | None

    def _target(self, base_value: float) -> float:
        return resolve_target(base_value, self.eta_min, self.eta_min_ratio)

    def _next_on_cosine(self, step: int, length: int) -> list[float]:
        """Return the values at a step of a cosine wave, computed from those one step before."""
        before = 1 + math.cos(math.pi * (step - 1) / length)
        factor = (1 + math.cos(math.pi * step / length)) / before
        values = []
        for base, value in zip(self.base_values, self._current_values(), strict=True):
            target = self._target(base)
            values.append(factor * (value - target) + target)
        return values


@PARAM_SCHEDULERS.register_module()
class CosineAnnealingParamScheduler(_CosineScheduler):
    """Follow half a cosine wave down to the minimum within `T_max` steps, then up again."""

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
        if eta_min is None and eta_min_ratio is None:
            eta_min = 0.0
        self.T_max = T_max or end - begin
        self.eta_min = eta_min
        self.eta_min_ratio = eta_min_ratio
        super().__init__(optimizer, param_name, begin, end, last_step, by_epoch, verbose)

    def _get_value(self) -> list[float]:
        if self.last_step == 0:
            return self._current_values()
        if (self.last_step - 1 - self.T_max) % (2 * self.T_max) != 0:
            return self._next_on_cosine(self.last_step, self.T_max)
        # The value is at its minimum, from which a factor cannot lead away.
        values = []
        for base, value in zip(self.base_values, self._current_values(), strict=True):
            rise = (base - self._target(base)) * (1 - math.cos(math.pi / self.T_max)) / 2
            values.append(value + rise)
        return values


@PARAM_SCHEDULERS.register_module()
class CosineRestartParamScheduler(_CosineScheduler):
    """Follow one cosine wave per period, each scaled by its one of `restart_weights`."""

    in_steps = ("periods",)

    def __init__(
        self,
        optimizer: Any,
        param_name: str,
        periods: Sequence[int],
        restart_weights: Sequence[float] = (1,),
        eta_min: float | None = None,
        eta_min_ratio: float | None = None,
        **kwargs: Any,
    ) -> None:
        if (eta_min is None) == (eta_min_ratio is None):
            raise AssertionError("Either `eta_min` or `eta_min_ratio` should be specified")
        if len(periods) != len(restart_weights):
            raise AssertionError("periods and restart_weights should have the same length.")
        self.periods = list(periods)
        self.restart_weights = list(restart_weights)
        self.eta_min = eta_min
        self.eta_min_ratio = eta_min_ratio
        super().__init__(optimizer, param_name, **kwargs)

    def _get_value(self) -> list[float]:
        index, position = locate_period(self.last_step, self.periods)
        if position >= self.periods[index]:
            return self._current_values()
        if position == 0:
            return [base * self.restart_weights[index] for base in self.base_values]
        return self._next_on_cosine(position, self.periods[index])


@PARAM_SCHEDULERS.register_module()
class OneCycleParamScheduler(_ParamScheduler):
    """Rise to `eta_max`, then fall far below the start, in two phases or `three_phase`."""

    in_steps = ("total_steps",)

    def __init__(
        self,
        optimizer: Any,
        param_name: str,
        eta_max: Any = 0,
        total_steps: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        begin: int = 0,
        end: int = INF,
        last_step: int = -1,
        by_epoch: bool = True,
        verbose: bool = False,
    ) -> None:
        if param_name != "lr":
            raise AssertionError(
                f"OneCycle only works for learning rate updating, but got {param_name}"
            )
        if total_steps is not None and (not isinstance(total_steps, int) or total_steps <= 0):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f'anneal_strategy must by one of "cos" or "linear", instead got {anneal_strategy}'
            )
        self.eta_max = eta_max
        self.total_steps = total_steps or end - begin
        self.pct_start = pct_start
        self.anneal_strategy: Any = anneal_strategy
        self.div_factor = div_factor
        self.final_div_factor = final_div_factor
        self.three_phase = three_phase
        if last_step == -1:
            self._set_bounds(optimizer.param_groups)
        super().__init__(optimizer, param_name, begin, end, last_step, by_epoch, verbose)

    def _set_bounds(self, groups: list[dict[str, Any]]) -> None:
        """Record the first, the highest and the last value in each group, as MMEngine does."""
        highest = self.eta_max
        if not isinstance(highest, (list, tuple)):
            highest = [highest] * len(groups)
        if len(highest) != len(groups):
            raise ValueError(f"expected {len(groups)} values for max_lr, got {len(highest)}")
        for group, value in zip(groups, highest, strict=True):
            initial = value / self.div_factor
            group.update(initial_lr=initial, max_lr=value, min_lr=initial / self.final_div_factor)

    def _get_value(self) -> list[float]:
        if self.last_step > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_step + 1} times. "
                f"The specified number of total steps is {self.total_steps}"
            )
        values = []
        for group in self.optimizer.param_groups:
            value = one_cycle(
                group["initial_lr"],
                group["max_lr"],
                group["min_lr"],
                self.last_step,
                self.total_steps,
                self.pct_start,
                self.anneal_strategy,
                self.three_phase,
            )
            values.append(value)
        return values
