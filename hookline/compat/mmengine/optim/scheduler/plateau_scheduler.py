"""MMEngine's scheduler that follows a validation metric."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.optim.scheduler.base import INF, _ParamScheduler
from hookline.compat.mmengine.registry import PARAM_SCHEDULERS


@PARAM_SCHEDULERS.register_module()
class ReduceOnPlateauParamScheduler(_ParamScheduler):
    """Multiply by `factor` when `monitor` has not improved for `patience` validations."""

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
        if rule not in ("less", "greater"):
            raise ValueError(f"rule should be less or greater, but got {rule}")
        if threshold_rule not in ("rel", "abs"):
            raise ValueError(f"threshold_rule should be rel or abs, but got {threshold_rule}")
        if threshold < 0:
            raise ValueError(f"threshold should not be less than 0, but got {threshold}")
        self.monitor = monitor
        self.rule = rule
        self.factor = factor
        self.patience = patience
        self.threshold = threshold
        self.threshold_rule = threshold_rule
        self.cooldown = cooldown
        self.eps = eps
        self.best = float(INF if rule == "less" else -INF)
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self.min_values = _min_values(min_value, len(optimizer.param_groups))
        super().__init__(optimizer, param_name, by_epoch=by_epoch, **kwargs)

    def _initial_step(self) -> None:
        self._global_step = 0
        self._last_value = self._current_values()

    def step(self, metrics: dict[str, Any] | None = None) -> None:
        """Count an epoch, or with metrics compare the monitored one with the best."""
        if metrics is None:
            self._global_step += 1
            return
        if self.begin <= self._global_step < self.end:
            self.last_step += 1
            if self.monitor not in metrics:
                raise KeyError(
                    f"Excepted key in {list(metrics)}, but got key {self.monitor} is not in dict"
                )
            self._update(metrics[self.monitor])
        self._last_value = self._current_values()

    def _update(self, score: float) -> None:
        if self._is_better(score):
            self.best = score
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        for index, (group, value) in enumerate(zip(groups, self._get_value(), strict=True)):
            if group[self.param_name] - value > self.eps:
                group[self.param_name] = value
                self.print_value(self.verbose, index, value)

    def _get_value(self) -> list[float]:
        values = []
        for value, minimum in zip(self._current_values(), self.min_values, strict=True):
            values.append(max(float(value) * self.factor, minimum))
        return values

    def _is_better(self, score: float) -> bool:
        threshold = -self.threshold if self.rule == "less" else self.threshold
        if self.threshold_rule == "rel":
            bound = self.best * (1.0 + threshold)
        else:
            bound = self.best + threshold
        if self.rule == "less":
            return score < bound
        return score > bound


def _min_values(given: Any, groups: int) -> list[float]:
    """Return the minimum of each group; a list may leave out the last one, which is repeated."""
    if isinstance(given, (list, tuple)):
        return [*given, given[-1]][:groups]
    return [given] * groups
