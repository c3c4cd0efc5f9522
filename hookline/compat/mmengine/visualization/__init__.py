"""`mmengine.visualization`: the visualizer and its backends."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.visualization.vis_backend import (
    BaseVisBackend,
    ClearMLVisBackend,
    DVCLiveVisBackend,
    LocalVisBackend,
    MLflowVisBackend,
    NeptuneVisBackend,
    TensorboardVisBackend,
    WandbVisBackend,
)
from hookline.compat.mmengine.visualization.visualizer import Visualizer

__all__ = [
    "BaseVisBackend",
    "ClearMLVisBackend",
    "DVCLiveVisBackend",
    "LocalVisBackend",
    "MLflowVisBackend",
    "NeptuneVisBackend",
    "TensorboardVisBackend",
    "Visualizer",
    "WandbVisBackend",
]
__getattr__ = not_covered(
    __name__,
    __all__,
    {"AimVisBackend": "Aim is not covered; LocalVisBackend and seven trackers are"},
)
