"""`mmengine.model`: base classes of models, their initialization and their averages."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.model.averaged_model import (
    BaseAveragedModel,
    ExponentialMovingAverage,
    MomentumAnnealingEMA,
    StochasticWeightAverage,
)
from hookline.compat.mmengine.model.base_model import (
    BaseDataPreprocessor,
    BaseModel,
    BaseTTAModel,
    ImgDataPreprocessor,
)
from hookline.compat.mmengine.model.base_module import (
    BaseModule,
    ModuleDict,
    ModuleList,
    Sequential,
)
from hookline.compat.mmengine.model.utils import merge_dict, revert_sync_batchnorm, stack_batch
from hookline.compat.mmengine.model.weight_init import (
    bias_init_with_prob,
    constant_init,
    initialize,
    kaiming_init,
    normal_init,
    trunc_normal_init,
    uniform_init,
    xavier_init,
)
from hookline.compat.mmengine.model.wrappers import MMDistributedDataParallel, is_model_wrapper

__all__ = [
    "BaseAveragedModel",
    "BaseDataPreprocessor",
    "BaseModel",
    "BaseModule",
    "BaseTTAModel",
    "ExponentialMovingAverage",
    "ImgDataPreprocessor",
    "MMDistributedDataParallel",
    "ModuleDict",
    "ModuleList",
    "MomentumAnnealingEMA",
    "Sequential",
    "StochasticWeightAverage",
    "bias_init_with_prob",
    "constant_init",
    "initialize",
    "is_model_wrapper",
    "kaiming_init",
    "merge_dict",
    "normal_init",
    "revert_sync_batchnorm",
    "stack_batch",
    "trunc_normal_init",
    "uniform_init",
    "xavier_init",
]
__getattr__ = not_covered(__name__, __all__)
