"""The base class and the built-in hooks of `dl_framework`, which take parameters as a dict."""

from hookline.compat.dl_framework.hooks.base import BaseHook
from hookline.compat.dl_framework.hooks.builtin import (
    FeatureMapHook,
    GradientFlowHook,
    SystemMonitorHook,
    TimeTrackingHook,
)
from hookline.compat.dl_framework.hooks.registry import HookRegistry
from hookline.compat.missing import not_covered

__all__ = [
    "BaseHook",
    "FeatureMapHook",
    "GradientFlowHook",
    "HookRegistry",
    "SystemMonitorHook",
    "TimeTrackingHook",
]

__getattr__ = not_covered(__name__, __all__)
