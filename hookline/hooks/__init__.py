"""The built-in hooks, and building them from configs."""

from hookline.hooks.base_hook import HOOKS, BaseHook, Hook, Priority, get_priority, state
from hookline.hooks.builder import build_hook, build_hooks, get_default_hooks
from hookline.hooks.checkpoint_hook import CheckpointHook
from hookline.hooks.eval_hook import EvalHook
from hookline.hooks.feature_map_hook import FeatureMapHook
from hookline.hooks.gradient_flow_hook import GradientFlowHook
from hookline.hooks.logger_hook import LoggerHook
from hookline.hooks.optimizer_hook import OptimizerHook
from hookline.hooks.profiler_hook import IterTimerHook
from hookline.hooks.system_monitor_hook import SystemMonitorHook
from hookline.hooks.time_tracking_hook import TimeTrackingHook

__all__ = [
    "HOOKS",
    "BaseHook",
    "CheckpointHook",
    "EvalHook",
    "FeatureMapHook",
    "GradientFlowHook",
    "Hook",
    "IterTimerHook",
    "LoggerHook",
    "OptimizerHook",
    "Priority",
    "SystemMonitorHook",
    "TimeTrackingHook",
    "build_hook",
    "build_hooks",
    "get_default_hooks",
    "get_priority",
    "state",
]
