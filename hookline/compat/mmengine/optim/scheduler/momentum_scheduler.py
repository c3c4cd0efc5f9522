"""MMEngine's schedulers of the momentum, which is the first beta of Adam and its variants."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.optim.scheduler import param_scheduler as schedulers
from hookline.compat.mmengine.optim.scheduler.plateau_scheduler import (
    ReduceOnPlateauParamScheduler,
)
from hookline.compat.mmengine.registry import PARAM_SCHEDULERS


class MomentumSchedulerMixin:
    """Schedule the parameter `momentum`, or the first of `betas`."""

    def __init__(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        self.use_betas = "momentum" not in optimizer.defaults and "betas" in optimizer.defaults
        if not self.use_betas and "momentum" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum when using momentum scheduler")
        if self.use_betas:
            for group in optimizer.param_groups:
                group["momentum"] = group["betas"][0]
        super().__init__(optimizer, "momentum", *args, **kwargs)  # type: ignore[call-arg]

    def step(self, *args: Any) -> None:
        super().step(*args)  # type: ignore[misc]
        if self.use_betas:
            for group in self.optimizer.param_groups:  # type: ignore[attr-defined]
                group["betas"] = (group["momentum"], group["betas"][1])


@PARAM_SCHEDULERS.register_module()
class ConstantMomentum(MomentumSchedulerMixin, schedulers.ConstantParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class CosineAnnealingMomentum(MomentumSchedulerMixin, schedulers.CosineAnnealingParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class CosineRestartMomentum(MomentumSchedulerMixin, schedulers.CosineRestartParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class ExponentialMomentum(MomentumSchedulerMixin, schedulers.ExponentialParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class LinearMomentum(MomentumSchedulerMixin, schedulers.LinearParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class MultiStepMomentum(MomentumSchedulerMixin, schedulers.MultiStepParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class PolyMomentum(MomentumSchedulerMixin, schedulers.PolyParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class ReduceOnPlateauMomentum(MomentumSchedulerMixin, ReduceOnPlateauParamScheduler): ...


@PARAM_SCHEDULERS.register_module()
class StepMomentum(MomentumSchedulerMixin, schedulers.StepParamScheduler): ...
