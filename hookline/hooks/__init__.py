"""The built-in hooks, and building them from configs."""

from typing import TYPE_CHECKING

from hookline.hooks.base_hook import HOOKS, BaseHook, Hook, Priority, get_priority, state
from hookline.hooks.builder import build_hook, build_hooks, get_default_hooks
from hookline.lazy import on_use

# Where each hook lives. They are imported on use: a run needs a few of them, and some bring a lot along.
_HOMES = {
    "AttentionMapHook": "hookline.hooks.attention_map_hook",
    "CAMHook": "hookline.hooks.cam_hook",
    "CheckInvalidLossHook": "hookline.hooks.check_invalid_loss_hook",
    "CheckpointHook": "hookline.hooks.checkpoint_hook",
    "ClearMLHook": "hookline.hooks.clearml_hook",
    "DistSamplerSeedHook": "hookline.hooks.dist_sampler_seed_hook",
    "DVCLiveHook": "hookline.hooks.dvclive_hook",
    "EarlyStoppingHook": "hookline.hooks.early_stopping_hook",
    "EMAHook": "hookline.hooks.ema_hook",
    "EmptyCacheHook": "hookline.hooks.empty_cache_hook",
    "DistEvalHook": "hookline.hooks.eval_hook",
    "EvalHook": "hookline.hooks.eval_hook",
    "FeatureMapHook": "hookline.hooks.feature_map_hook",
    "GradientFlowHook": "hookline.hooks.gradient_flow_hook",
    "HistogramHook": "hookline.hooks.histogram_hook",
    "IterTimerHook": "hookline.hooks.iter_timer_hook",
    "LambdaHook": "hookline.hooks.lambda_hook",
    "LoggerHook": "hookline.hooks.logger_hook",
    "TextLoggerHook": "hookline.hooks.logger_hook",
    "LRSchedulerHook": "hookline.hooks.lr_scheduler_hook",
    "CosineAnnealingLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "CosineRestartLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "CyclicLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "ExpLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "FixedLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "FlatCosineAnnealingLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "InvLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "LinearAnnealingLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "LrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "OneCycleLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "PolyLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "StepLrUpdaterHook": "hookline.hooks.lr_updater_hook",
    "MemoryProfilerHook": "hookline.hooks.memory_profiler_hook",
    "MLflowHook": "hookline.hooks.mlflow_hook",
    "CosineAnnealingMomentumUpdaterHook": "hookline.hooks.momentum_updater_hook",
    "CyclicMomentumUpdaterHook": "hookline.hooks.momentum_updater_hook",
    "LinearAnnealingMomentumUpdaterHook": "hookline.hooks.momentum_updater_hook",
    "MomentumUpdaterHook": "hookline.hooks.momentum_updater_hook",
    "OneCycleMomentumUpdaterHook": "hookline.hooks.momentum_updater_hook",
    "StepMomentumUpdaterHook": "hookline.hooks.momentum_updater_hook",
    "NeptuneHook": "hookline.hooks.neptune_hook",
    "AmpOptimizerHook": "hookline.hooks.optimizer_hook",
    "Fp16OptimizerHook": "hookline.hooks.optimizer_hook",
    "GradientCumulativeFp16OptimizerHook": "hookline.hooks.optimizer_hook",
    "GradientCumulativeOptimizerHook": "hookline.hooks.optimizer_hook",
    "OptimizerHook": "hookline.hooks.optimizer_hook",
    "ParamSchedulerHook": "hookline.hooks.param_scheduler_hook",
    "PeriodicWriterHook": "hookline.hooks.periodic_writer_hook",
    "PreciseBNHook": "hookline.hooks.precise_bn_hook",
    "ProfilerHook": "hookline.hooks.profiler_hook",
    "ReportHook": "hookline.hooks.report_hook",
    "RollbackHook": "hookline.hooks.rollback_hook",
    "RunTraceHook": "hookline.hooks.run_trace_hook",
    "RuntimeInfoHook": "hookline.hooks.runtime_info_hook",
    "SaliencyHook": "hookline.hooks.saliency_hook",
    "StopAtHook": "hookline.hooks.stop_at_hook",
    "SwanLabHook": "hookline.hooks.swanlab_hook",
    "SyncBuffersHook": "hookline.hooks.sync_buffers_hook",
    "SystemMonitorHook": "hookline.hooks.system_monitor_hook",
    "TensorBoardHook": "hookline.hooks.tensorboard_hook",
    "TestHook": "hookline.hooks.test_timer_hook",
    "ThroughputHook": "hookline.hooks.throughput_hook",
    "TimeLimitHook": "hookline.hooks.time_limit_hook",
    "TimeTrackingHook": "hookline.hooks.time_tracking_hook",
    "TrackioHook": "hookline.hooks.trackio_hook",
    "UnevenBatchHook": "hookline.hooks.uneven_batch_hook",
    "DetVisualizationHook": "hookline.hooks.visualization_hook",
    "SegVisualizationHook": "hookline.hooks.visualization_hook",
    "VisualizationHook": "hookline.hooks.visualization_hook",
    "WandbHook": "hookline.hooks.wandb_hook",
}
__getattr__ = on_use(__name__, _HOMES)

if TYPE_CHECKING:
    from hookline.hooks.attention_map_hook import AttentionMapHook
    from hookline.hooks.cam_hook import CAMHook
    from hookline.hooks.check_invalid_loss_hook import CheckInvalidLossHook
    from hookline.hooks.checkpoint_hook import CheckpointHook
    from hookline.hooks.clearml_hook import ClearMLHook
    from hookline.hooks.dist_sampler_seed_hook import DistSamplerSeedHook
    from hookline.hooks.dvclive_hook import DVCLiveHook
    from hookline.hooks.early_stopping_hook import EarlyStoppingHook
    from hookline.hooks.ema_hook import EMAHook
    from hookline.hooks.empty_cache_hook import EmptyCacheHook
    from hookline.hooks.eval_hook import DistEvalHook, EvalHook
    from hookline.hooks.feature_map_hook import FeatureMapHook
    from hookline.hooks.gradient_flow_hook import GradientFlowHook
    from hookline.hooks.histogram_hook import HistogramHook
    from hookline.hooks.iter_timer_hook import IterTimerHook
    from hookline.hooks.lambda_hook import LambdaHook
    from hookline.hooks.logger_hook import LoggerHook, TextLoggerHook
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
    from hookline.hooks.memory_profiler_hook import MemoryProfilerHook
    from hookline.hooks.mlflow_hook import MLflowHook
    from hookline.hooks.momentum_updater_hook import (
        CosineAnnealingMomentumUpdaterHook,
        CyclicMomentumUpdaterHook,
        LinearAnnealingMomentumUpdaterHook,
        MomentumUpdaterHook,
        OneCycleMomentumUpdaterHook,
        StepMomentumUpdaterHook,
    )
    from hookline.hooks.neptune_hook import NeptuneHook
    from hookline.hooks.optimizer_hook import (
        AmpOptimizerHook,
        Fp16OptimizerHook,
        GradientCumulativeFp16OptimizerHook,
        GradientCumulativeOptimizerHook,
        OptimizerHook,
    )
    from hookline.hooks.param_scheduler_hook import ParamSchedulerHook
    from hookline.hooks.periodic_writer_hook import PeriodicWriterHook
    from hookline.hooks.precise_bn_hook import PreciseBNHook
    from hookline.hooks.profiler_hook import ProfilerHook
    from hookline.hooks.report_hook import ReportHook
    from hookline.hooks.rollback_hook import RollbackHook
    from hookline.hooks.run_trace_hook import RunTraceHook
    from hookline.hooks.runtime_info_hook import RuntimeInfoHook
    from hookline.hooks.saliency_hook import SaliencyHook
    from hookline.hooks.stop_at_hook import StopAtHook
    from hookline.hooks.swanlab_hook import SwanLabHook
    from hookline.hooks.sync_buffers_hook import SyncBuffersHook
    from hookline.hooks.system_monitor_hook import SystemMonitorHook
    from hookline.hooks.tensorboard_hook import TensorBoardHook
    from hookline.hooks.test_timer_hook import TestHook
    from hookline.hooks.throughput_hook import ThroughputHook
    from hookline.hooks.time_limit_hook import TimeLimitHook
    from hookline.hooks.time_tracking_hook import TimeTrackingHook
    from hookline.hooks.trackio_hook import TrackioHook
    from hookline.hooks.uneven_batch_hook import UnevenBatchHook
    from hookline.hooks.visualization_hook import DetVisualizationHook, SegVisualizationHook, VisualizationHook
    from hookline.hooks.wandb_hook import WandbHook

__all__ = [
    "HOOKS",
    "AmpOptimizerHook",
    "AttentionMapHook",
    "BaseHook",
    "CAMHook",
    "CheckInvalidLossHook",
    "CheckpointHook",
    "ClearMLHook",
    "CosineAnnealingLrUpdaterHook",
    "CosineAnnealingMomentumUpdaterHook",
    "CosineRestartLrUpdaterHook",
    "CyclicLrUpdaterHook",
    "CyclicMomentumUpdaterHook",
    "DVCLiveHook",
    "DetVisualizationHook",
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
    "HistogramHook",
    "Hook",
    "InvLrUpdaterHook",
    "IterTimerHook",
    "LRSchedulerHook",
    "LambdaHook",
    "LinearAnnealingLrUpdaterHook",
    "LinearAnnealingMomentumUpdaterHook",
    "LoggerHook",
    "LrUpdaterHook",
    "MLflowHook",
    "MemoryProfilerHook",
    "MomentumUpdaterHook",
    "NeptuneHook",
    "OneCycleLrUpdaterHook",
    "OneCycleMomentumUpdaterHook",
    "OptimizerHook",
    "ParamSchedulerHook",
    "PeriodicWriterHook",
    "PolyLrUpdaterHook",
    "PreciseBNHook",
    "Priority",
    "ProfilerHook",
    "ReportHook",
    "RollbackHook",
    "RunTraceHook",
    "RuntimeInfoHook",
    "SaliencyHook",
    "SegVisualizationHook",
    "StepLrUpdaterHook",
    "StepMomentumUpdaterHook",
    "StopAtHook",
    "SwanLabHook",
    "SyncBuffersHook",
    "SystemMonitorHook",
    "TensorBoardHook",
    "TestHook",
    "TextLoggerHook",
    "ThroughputHook",
    "TimeLimitHook",
    "TimeTrackingHook",
    "TrackioHook",
    "UnevenBatchHook",
    "VisualizationHook",
    "WandbHook",
    "build_hook",
    "build_hooks",
    "get_default_hooks",
    "get_priority",
    "state",
]
