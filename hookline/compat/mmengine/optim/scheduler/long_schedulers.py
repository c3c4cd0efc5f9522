"""Schedulers with a longer story: one cycle, cosine with restarts, and reduction on a plateau."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hookline.compat.mmengine.optim.scheduler.base import INF, _ParamScheduler
from hookline.compat.mmengine.registry import PARAM_SCHEDULERS


@PARAM_SCHEDULERS.register_module()
class OneCycleParamScheduler(_ParamScheduler):
    """Up to `eta_max` and far down again, in two or `three_phase` phases of a cosine or straight lines."""

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
            raise AssertionError(f"OneCycle only works for learning rate updating, but got {param_name}")
        if total_steps is not None and (not isinstance(total_steps, int) or total_steps <= 0):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f'anneal_strategy must by one of "cos" or "linear", instead got {anneal_strategy}')
        self.eta_max, self.div_factor, self.final_div_factor = eta_max, div_factor, final_div_factor
        self.total_steps, self.anneal_strategy = total_steps or end - begin, anneal_strategy
        turns = [("initial", "max", pct_start * self.total_steps - 1), ("max", "initial", 2 * pct_start * self.total_steps - 2)]
        phases = [*turns, ("initial", "min", self.total_steps - 1)] if three_phase else [turns[0], ("max", "min", self.total_steps - 1)]
        self._schedule_phases = [{"start": f"{a}_lr", "end": f"{b}_lr", "end_step": float(step)} for a, b, step in phases]
        if last_step == -1:
            highest = eta_max if isinstance(eta_max, (list, tuple)) else [eta_max] * len(optimizer.param_groups)
            for group, value in zip(optimizer.param_groups, highest, strict=True):
                initial = value / div_factor
                group.update(initial_lr=initial, max_lr=value, min_lr=initial / final_div_factor)
        super().__init__(optimizer, param_name, begin, end, last_step, by_epoch, verbose)

    def _get_value(self) -> list[float]:
        if self.last_step > self.total_steps:
            raise ValueError(f"Tried to step {self.last_step + 1} times. The specified number of total steps is {self.total_steps}")
        start = 0.0
        phases: list[dict[str, Any]] = self._schedule_phases
        phase = phases[-1]
        for phase in phases:
            if self.last_step <= phase["end_step"] or phase is phases[-1]:
                break
            start = phase["end_step"]
        share = (self.last_step - start) / (phase["end_step"] - start)
        return [self._between(group[phase["start"]], group[phase["end"]], share) for group in self.optimizer.param_groups]

    def _between(self, start: float, end: float, share: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)


@PARAM_SCHEDULERS.register_module()
class CosineRestartParamScheduler(_ParamScheduler):
    """Cosines one after the other, each of its own length and height."""

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
        self.periods, self.restart_weights = list(periods), list(restart_weights)
        self.eta_min, self.eta_min_ratio = eta_min, eta_min_ratio
        self.cumulative_periods = [sum(self.periods[: index + 1]) for index in range(len(self.periods))]
        super().__init__(optimizer, param_name, **kwargs)

    def _get_value(self) -> list[float]:
        index = next((i for i, end in enumerate(self.cumulative_periods) if self.last_step < end), None)
        if index is None:
            return self._now()
        period = self.periods[index]
        step = self.last_step - (self.cumulative_periods[index - 1] if index else 0)
        if step == 0:
            return [base * self.restart_weights[index] for base in self.base_values]
        share = (1 + math.cos(math.pi * step / period)) / (1 + math.cos(math.pi * (step - 1) / period))
        lows = [base * self.eta_min_ratio if self.eta_min is None else self.eta_min for base in self.base_values]
        return [share * (value - low) + low for value, low in zip(self._now(), lows, strict=True)]


@PARAM_SCHEDULERS.register_module()
class ReduceOnPlateauParamScheduler(_ParamScheduler):
    """Times `factor` when the validation's `monitor` has not improved for `patience` validations."""

    need_val_args = True

    def __init__(
        self,
        optimizer: Any,
        param_name: str,
        monitor: str = "loss",
        rule: str = "less",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_rule: str = "rel",
        cooldown: int = 0,
        min_value: Any = 0.0,
        eps: float = 1e-8,
        by_epoch: bool = True,
        **kwargs: Any,
    ) -> None:
        if not by_epoch:
            raise AssertionError(f"Now {type(self).__name__} only support by_epoch=True")
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if rule not in ("less", "greater") or threshold_rule not in ("rel", "abs") or threshold < 0:
            raise ValueError(f"rule is less or greater, threshold_rule rel or abs, got {rule}, {threshold_rule} and {threshold}")
        self.monitor, self.rule, self.factor, self.patience = monitor, rule, factor, patience
        self.threshold, self.threshold_rule, self.cooldown, self.eps = threshold, threshold_rule, cooldown, eps
        self.best = float(INF if rule == "less" else -INF)
        self.cooldown_counter = self.num_bad_epochs = 0
        groups = len(optimizer.param_groups)
        self.min_values = ([*min_value, min_value[-1]] if isinstance(min_value, (list, tuple)) else [min_value] * groups)[:groups]
        super().__init__(optimizer, param_name, by_epoch=by_epoch, **kwargs)

    def _begin_with(self) -> None:
        self._global_step = 0
        self._last_value = self._now()

    def step(self, metrics: dict[str, Any] | None = None) -> None:
        """Without metrics an epoch is counted; with them the value is judged."""
        if metrics is None:
            self._global_step += 1
            return
        if self.begin <= self._global_step < self.end:
            self.last_step += 1
            if self.monitor not in metrics:
                raise KeyError(f"Excepted key in {list(metrics)}, but got key {self.monitor} is not in dict")
            self._judge(metrics[self.monitor])
        self._last_value = self._now()

    def _judge(self, score: float) -> None:
        if self._is_better(score):
            self.best, self.num_bad_epochs = score, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for index, (group, value) in enumerate(zip(self.optimizer.param_groups, self._get_value(), strict=True)):
                if group[self.param_name] - value > self.eps:
                    group[self.param_name] = value
                    self.print_value(self.verbose, index, value)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def _get_value(self) -> list[float]:
        return [max(float(value) * self.factor, low) for value, low in zip(self._now(), self.min_values, strict=True)]

    def _is_better(self, score: float) -> bool:
        sign = -1 if self.rule == "less" else 1
        bound = self.best * (1.0 + sign * self.threshold) if self.threshold_rule == "rel" else self.best + sign * self.threshold
        return score < bound if self.rule == "less" else score > bound


__all__ = ["CosineRestartParamScheduler", "OneCycleParamScheduler", "ReduceOnPlateauParamScheduler"]
