"""`mmengine.optim`: the optimizer wrapper and schedulers of the learning rate."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.optim.builder import build_optim_wrapper
from hookline.compat.mmengine.optim.optim_wrapper import OptimWrapper
from hookline.compat.mmengine.optim.scheduler import (
    CosineAnnealingLR,
    LinearLR,
    MultiStepLR,
    StepLR,
)

__all__ = [
    "CosineAnnealingLR",
    "LinearLR",
    "MultiStepLR",
    "OptimWrapper",
    "StepLR",
    "build_optim_wrapper",
]
__getattr__ = not_covered(__name__, __all__, advice=ADVICE)
