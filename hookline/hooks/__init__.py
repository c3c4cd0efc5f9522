"""The built-in hooks, and building them from configs."""

from hookline.hooks.base_hook import HOOKS, BaseHook, Hook, Priority, get_priority, state
from hookline.hooks.builder import build_hook, build_hooks, get_default_hooks
from hookline.hooks.checkpoint_hook import CheckpointHook
from hookline.hooks.eval_hook import EvalHook
from hookline.hooks.feature_map_hook import FeatureMapHook
from hookline.hooks.gradient_flow_hook import GradientFlowHook
from hookline.hooks.logger_hook import LoggerHook
from hookline.hooks.lr_scheduler_hook import LRSchedulerHook
from hookline.hooks.lr_updater_hook import (
    CosineAnnealingLrUpdaterHook,
    CosineRestartLrUpdaterHook,
    CyclicLrUpdaterHook,
    ExpLrUpdaterHook,
    FixedLrUpdaterHook,
    FlatCosineAnnealingLrUpdaterHook,
    InvLrUpdaterHook,
    LinearAnnealingLrUpdaterHook,
    LrUpdaterHook,
    OneCycleLrUpdaterHook,
    PolyLrUpdaterHook,
    StepLrUpdaterHook,
)
from hookline.hooks.momentum_updater_hook import (
    CosineAnnealingMomentumUpdaterHook,
    CyclicMomentumUpdaterHook,
    LinearAnnealingMomentumUpdaterHook,
    MomentumUpdaterHook,
    OneCycleMomentumUpdaterHook,
    StepMomentumUpdaterHook,
)
from hookline.hooks.optimizer_hook import (
    AmpOptimizerHook,
    Fp16OptimizerHook,
    GradientCumulativeFp16OptimizerHook,
    GradientCumulativeOptimizerHook,
    OptimizerHook,
)
from hookline.hooks.param_scheduler_hook import ParamSchedulerHook
from hookline.hooks.profiler_hook import IterTimerHook
from hookline.hooks.system_monitor_hook import SystemMonitorHook
from hookline.hooks.time_tracking_hook import TimeTrackingHook

__all__ = [
    "HOOKS",
    "AmpOptimizerHook",
    "BaseHook",
    "CheckpointHook",
    "CosineAnnealingLrUpdaterHook",
    "CosineAnnealingMomentumUpdaterHook",
    "CosineRestartLrUpdaterHook",
    "CyclicLrUpdaterHook",
    "CyclicMomentumUpdaterHook",
    "EvalHook",
    "ExpLrUpdaterHook",
    "FeatureMapHook",
    "FixedLrUpdaterHook",
    "FlatCosineAnnealingLrUpdaterHook",
    "Fp16OptimizerHook",
    "GradientCumulativeFp16OptimizerHook",
    "GradientCumulativeOptimizerHook",
    "GradientFlowHook",
    "Hook",
    "InvLrUpdaterHook",
    "IterTimerHook",
    "LRSchedulerHook",
    "LinearAnnealingLrUpdaterHook",
    "LinearAnnealingMomentumUpdaterHook",
    "LoggerHook",
    "LrUpdaterHook",
    "MomentumUpdaterHook",
    "OneCycleLrUpdaterHook",
    "OneCycleMomentumUpdaterHook",
    "OptimizerHook",
    "ParamSchedulerHook",
    "PolyLrUpdaterHook",
    "Priority",
    "StepLrUpdaterHook",
    "StepMomentumUpdaterHook",
    "SystemMonitorHook",
    "TimeTrackingHook",
    "build_hook",
    "build_hooks",
    "get_default_hooks",
    "get_priority",
    "state",
]
