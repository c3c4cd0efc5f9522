"""The module `mmengine.optim.scheduler`: all parameter schedulers."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.optim.scheduler.base import _ParamScheduler
from hookline.compat.mmengine.optim.scheduler.lr_scheduler import (
    ConstantLR,
    CosineAnnealingLR,
    CosineRestartLR,
    ExponentialLR,
    LinearLR,
    MultiStepLR,
    OneCycleLR,
    PolyLR,
    ReduceOnPlateauLR,
    StepLR,
)
from hookline.compat.mmengine.optim.scheduler.momentum_scheduler import (
    ConstantMomentum,
    CosineAnnealingMomentum,
    CosineRestartMomentum,
    ExponentialMomentum,
    LinearMomentum,
    MultiStepMomentum,
    PolyMomentum,
    ReduceOnPlateauMomentum,
    StepMomentum,
)
from hookline.compat.mmengine.optim.scheduler.param_scheduler import (
    ConstantParamScheduler,
    CosineAnnealingParamScheduler,
    CosineRestartParamScheduler,
    ExponentialParamScheduler,
    LinearParamScheduler,
    MultiStepParamScheduler,
    OneCycleParamScheduler,
    PolyParamScheduler,
    StepParamScheduler,
)
from hookline.compat.mmengine.optim.scheduler.plateau_scheduler import (
    ReduceOnPlateauParamScheduler,
)

__all__ = [
    "ConstantLR",
    "ConstantMomentum",
    "ConstantParamScheduler",
    "CosineAnnealingLR",
    "CosineAnnealingMomentum",
    "CosineAnnealingParamScheduler",
    "CosineRestartLR",
    "CosineRestartMomentum",
    "CosineRestartParamScheduler",
    "ExponentialLR",
    "ExponentialMomentum",
    "ExponentialParamScheduler",
    "LinearLR",
    "LinearMomentum",
    "LinearParamScheduler",
    "MultiStepLR",
    "MultiStepMomentum",
    "MultiStepParamScheduler",
    "OneCycleLR",
    "OneCycleParamScheduler",
    "PolyLR",
    "PolyMomentum",
    "PolyParamScheduler",
    "ReduceOnPlateauLR",
    "ReduceOnPlateauMomentum",
    "ReduceOnPlateauParamScheduler",
    "StepLR",
    "StepMomentum",
    "StepParamScheduler",
    "_ParamScheduler",
]
__getattr__ = not_covered(__name__, __all__)
