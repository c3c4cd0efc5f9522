"""The schedulers of the learning rate."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.optim.scheduler import long_schedulers
from hookline.compat.mmengine.optim.scheduler import param_scheduler as schedulers
from hookline.compat.mmengine.registry import PARAM_SCHEDULERS


class LRSchedulerMixin:
    """Makes a parameter scheduler one of the learning rate."""

    def __init__(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(optimizer, "lr", *args, **kwargs)  # type: ignore[call-arg]


@PARAM_SCHEDULERS.register_module()
class ConstantLR(LRSchedulerMixin, schedulers.ConstantParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class CosineAnnealingLR(LRSchedulerMixin, schedulers.CosineAnnealingParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class CosineRestartLR(LRSchedulerMixin, long_schedulers.CosineRestartParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class ExponentialLR(LRSchedulerMixin, schedulers.ExponentialParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class LinearLR(LRSchedulerMixin, schedulers.LinearParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class MultiStepLR(LRSchedulerMixin, schedulers.MultiStepParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class OneCycleLR(LRSchedulerMixin, long_schedulers.OneCycleParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class PolyLR(LRSchedulerMixin, schedulers.PolyParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class ReduceOnPlateauLR(LRSchedulerMixin, long_schedulers.ReduceOnPlateauParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class StepLR(LRSchedulerMixin, schedulers.StepParamScheduler): ...


__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineRestartLR",
    "ExponentialLR",
    "LinearLR",
    "MultiStepLR",
    "OneCycleLR",
    "PolyLR",
    "ReduceOnPlateauLR",
    "StepLR",
]
