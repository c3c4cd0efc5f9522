"""`mmengine.optim.optimizer`: optimizer wrappers and their constructors."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.optim.optimizer.builder import build_optim_wrapper
from hookline.compat.mmengine.optim.optimizer.constructor import DefaultOptimWrapperConstructor
from hookline.compat.mmengine.optim.optimizer.optim_wrapper import (
    AmpOptimWrapper,
    BaseOptimWrapper,
    OptimWrapper,
    OptimWrapperDict,
)
from hookline.compat.mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIMIZERS

__all__ = [
    "OPTIMIZERS",
    "OPTIM_WRAPPER_CONSTRUCTORS",
    "AmpOptimWrapper",
    "BaseOptimWrapper",
    "DefaultOptimWrapperConstructor",
    "OptimWrapper",
    "OptimWrapperDict",
    "build_optim_wrapper",
]
__getattr__ = not_covered(
    __name__, __all__, {"ApexOptimWrapper": "Apex is retired; use AmpOptimWrapper"}
)
