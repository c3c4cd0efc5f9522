"""The built-in hooks, and building them from configs."""

from hookline.hooks.base_hook import HOOKS, BaseHook, Hook, Priority, get_priority, state
from hookline.hooks.builder import build_hook, build_hooks, get_default_hooks
from hookline.hooks.check_invalid_loss_hook import CheckInvalidLossHook
from hookline.hooks.checkpoint_hook import CheckpointHook
from hookline.hooks.dist_sampler_seed_hook import DistSamplerSeedHook
from hookline.hooks.early_stopping_hook import EarlyStoppingHook
from hookline.hooks.ema_hook import EMAHook
from hookline.hooks.empty_cache_hook import EmptyCacheHook
from hookline.hooks.eval_hook import DistEvalHook, EvalHook
from hookline.hooks.feature_map_hook import FeatureMapHook
from hookline.hooks.gradient_flow_hook import GradientFlowHook
from hookline.hooks.lambda_hook import LambdaHook
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
from hookline.hooks.precise_bn_hook import PreciseBNHook
from hookline.hooks.profiler_hook import IterTimerHook
from hookline.hooks.rollback_hook import RollbackHook
from hookline.hooks.runtime_info_hook import RuntimeInfoHook
from hookline.hooks.stop_at_hook import StopAtHook
from hookline.hooks.sync_buffers_hook import SyncBuffersHook
from hookline.hooks.system_monitor_hook import SystemMonitorHook
from hookline.hooks.test_timer_hook import TestHook
from hookline.hooks.time_limit_hook import TimeLimitHook
from hookline.hooks.time_tracking_hook import TimeTrackingHook

__all__ = [
    "HOOKS",
    "AmpOptimizerHook",
    "BaseHook",
    "CheckInvalidLossHook",
    "CheckpointHook",
    "CosineAnnealingLrUpdaterHook",
    "CosineAnnealingMomentumUpdaterHook",
    "CosineRestartLrUpdaterHook",
    "CyclicLrUpdaterHook",
    "CyclicMomentumUpdaterHook",
    "DistEvalHook",
    "DistSamplerSeedHook",
    "EMAHook",
    "EarlyStoppingHook",
    "EmptyCacheHook",
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
    "LambdaHook",
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
    "PreciseBNHook",
    "Priority",
    "RollbackHook",
    "RuntimeInfoHook",
    "StepLrUpdaterHook",
    "StepMomentumUpdaterHook",
    "StopAtHook",
    "SyncBuffersHook",
    "SystemMonitorHook",
    "TestHook",
    "TimeLimitHook",
    "TimeTrackingHook",
    "build_hook",
    "build_hooks",
    "get_default_hooks",
    "get_priority",
    "state",
]
