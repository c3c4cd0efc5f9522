"""`mmengine.model`: the base class of models."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.model.base_model import BaseDataPreprocessor, BaseModel
from hookline.compat.mmengine.model.wrappers import MMDistributedDataParallel, is_model_wrapper

__all__ = ["BaseDataPreprocessor", "BaseModel", "MMDistributedDataParallel", "is_model_wrapper"]
__getattr__ = not_covered(__name__, __all__, advice=ADVICE)
