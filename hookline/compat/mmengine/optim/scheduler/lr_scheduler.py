"""MMEngine's schedulers of the learning rate."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.optim.scheduler import param_scheduler as schedulers
from hookline.compat.mmengine.optim.scheduler.plateau_scheduler import (
    ReduceOnPlateauParamScheduler,
)
from hookline.compat.mmengine.registry import PARAM_SCHEDULERS


class LRSchedulerMixin:
    """Schedule the parameter `lr`."""

    def __init__(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(optimizer, "lr", *args, **kwargs)  # type: ignore[call-arg]


@PARAM_SCHEDULERS.register_module()
class ConstantLR(LRSchedulerMixin, schedulers.ConstantParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class CosineAnnealingLR(LRSchedulerMixin, schedulers.CosineAnnealingParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class CosineRestartLR(LRSchedulerMixin, schedulers.CosineRestartParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class ExponentialLR(LRSchedulerMixin, schedulers.ExponentialParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class LinearLR(LRSchedulerMixin, schedulers.LinearParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class MultiStepLR(LRSchedulerMixin, schedulers.MultiStepParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class OneCycleLR(LRSchedulerMixin, schedulers.OneCycleParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class PolyLR(LRSchedulerMixin, schedulers.PolyParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class ReduceOnPlateauLR(LRSchedulerMixin, ReduceOnPlateauParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class StepLR(LRSchedulerMixin, schedulers.StepParamScheduler): ...
