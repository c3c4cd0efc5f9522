"""Hooks that log the values of a run."""

from hookline.compat.missing import not_covered
from hookline.compat.mmcv.runner.hooks.logger.base import LoggerHook
from hookline.compat.mmcv.runner.hooks.logger.text import TextLoggerHook
from hookline.compat.mmcv.runner.hooks.logger.trackers import (
    ClearMLLoggerHook,
    DvcliveLoggerHook,
    MlflowLoggerHook,
    NeptuneLoggerHook,
    TensorboardLoggerHook,
    WandbLoggerHook,
)

__all__ = [
    "ClearMLLoggerHook",
    "DvcliveLoggerHook",
    "LoggerHook",
    "MlflowLoggerHook",
    "NeptuneLoggerHook",
    "TensorboardLoggerHook",
    "TextLoggerHook",
    "WandbLoggerHook",
]

__getattr__ = not_covered(
    __name__, __all__, dict.fromkeys(("PaviLoggerHook", "SegmindLoggerHook"), "use WandbLoggerHook")
)
