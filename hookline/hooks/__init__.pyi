# The public names of this package, for type checkers and for the lazy imports of `__init__.py`.

from .activation_checkpoint_hook import ActivationCheckpointHook as ActivationCheckpointHook
from .attention_map_hook import AttentionMapHook as AttentionMapHook
from .base_hook import HOOKS as HOOKS
from .base_hook import BaseHook as BaseHook
from .base_hook import Hook as Hook
from .base_hook import Priority as Priority
from .base_hook import get_priority as get_priority
from .base_hook import state as state
from .builder import build_hook as build_hook
from .builder import build_hooks as build_hooks
from .builder import get_default_hooks as get_default_hooks
from .cam_hook import CAMHook as CAMHook
from .check_invalid_loss_hook import CheckInvalidLossHook as CheckInvalidLossHook
from .checkpoint_hook import CheckpointHook as CheckpointHook
from .clearml_hook import ClearMLHook as ClearMLHook
from .dist_sampler_seed_hook import DistSamplerSeedHook as DistSamplerSeedHook
from .dvclive_hook import DVCLiveHook as DVCLiveHook
from .early_stopping_hook import EarlyStoppingHook as EarlyStoppingHook
from .ema_hook import EMAHook as EMAHook
from .empty_cache_hook import EmptyCacheHook as EmptyCacheHook
from .eval_hook import DistEvalHook as DistEvalHook
from .eval_hook import EvalHook as EvalHook
from .export_hook import ExportHook as ExportHook
from .feature_map_hook import FeatureMapHook as FeatureMapHook
from .freeze_hook import FreezeHook as FreezeHook
from .generation_hook import GenerationHook as GenerationHook
from .gradient_flow_hook import GradientFlowHook as GradientFlowHook
from .histogram_hook import HistogramHook as HistogramHook
from .iter_timer_hook import IterTimerHook as IterTimerHook
from .lambda_hook import LambdaHook as LambdaHook
from .logger_hook import LoggerHook as LoggerHook
from .logger_hook import TextLoggerHook as TextLoggerHook
from .lr_scheduler_hook import LRSchedulerHook as LRSchedulerHook
from .lr_updater_hook import CosineAnnealingLrUpdaterHook as CosineAnnealingLrUpdaterHook
from .lr_updater_hook import CosineRestartLrUpdaterHook as CosineRestartLrUpdaterHook
from .lr_updater_hook import CyclicLrUpdaterHook as CyclicLrUpdaterHook
from .lr_updater_hook import ExpLrUpdaterHook as ExpLrUpdaterHook
from .lr_updater_hook import FixedLrUpdaterHook as FixedLrUpdaterHook
from .lr_updater_hook import FlatCosineAnnealingLrUpdaterHook as FlatCosineAnnealingLrUpdaterHook
from .lr_updater_hook import InvLrUpdaterHook as InvLrUpdaterHook
from .lr_updater_hook import LinearAnnealingLrUpdaterHook as LinearAnnealingLrUpdaterHook
from .lr_updater_hook import LrUpdaterHook as LrUpdaterHook
from .lr_updater_hook import OneCycleLrUpdaterHook as OneCycleLrUpdaterHook
from .lr_updater_hook import PolyLrUpdaterHook as PolyLrUpdaterHook
from .lr_updater_hook import StepLrUpdaterHook as StepLrUpdaterHook
from .lr_updater_hook import WSDLrUpdaterHook as WSDLrUpdaterHook
from .manual_optimization_hook import ManualOptimizationHook as ManualOptimizationHook
from .memory_profiler_hook import MemoryProfilerHook as MemoryProfilerHook
from .memory_snapshot_hook import MemorySnapshotHook as MemorySnapshotHook
from .micro_batch_hook import MicroBatchHook as MicroBatchHook
from .mlflow_hook import MLflowHook as MLflowHook
from .momentum_updater_hook import (
    CosineAnnealingMomentumUpdaterHook as CosineAnnealingMomentumUpdaterHook,
)
from .momentum_updater_hook import CyclicMomentumUpdaterHook as CyclicMomentumUpdaterHook
from .momentum_updater_hook import (
    LinearAnnealingMomentumUpdaterHook as LinearAnnealingMomentumUpdaterHook,
)
from .momentum_updater_hook import MomentumUpdaterHook as MomentumUpdaterHook
from .momentum_updater_hook import OneCycleMomentumUpdaterHook as OneCycleMomentumUpdaterHook
from .momentum_updater_hook import StepMomentumUpdaterHook as StepMomentumUpdaterHook
from .neptune_hook import NeptuneHook as NeptuneHook
from .notify_hook import NotifyHook as NotifyHook
from .optimizer_hook import AmpOptimizerHook as AmpOptimizerHook
from .optimizer_hook import Fp16OptimizerHook as Fp16OptimizerHook
from .optimizer_hook import (
    GradientCumulativeFp16OptimizerHook as GradientCumulativeFp16OptimizerHook,
)
from .optimizer_hook import GradientCumulativeOptimizerHook as GradientCumulativeOptimizerHook
from .optimizer_hook import OptimizerHook as OptimizerHook
from .optimizer_mode_hook import OptimizerModeHook as OptimizerModeHook
from .param_scheduler_hook import ParamSchedulerHook as ParamSchedulerHook
from .periodic_writer_hook import PeriodicWriterHook as PeriodicWriterHook
from .precise_bn_hook import PreciseBNHook as PreciseBNHook
from .profiler_hook import ProfilerHook as ProfilerHook
from .report_hook import ReportHook as ReportHook
from .rollback_hook import RollbackHook as RollbackHook
from .run_trace_hook import RunTraceHook as RunTraceHook
from .runtime_info_hook import RuntimeInfoHook as RuntimeInfoHook
from .saliency_hook import SaliencyHook as SaliencyHook
from .sam_hook import SAMHook as SAMHook
from .stop_at_hook import StopAtHook as StopAtHook
from .swanlab_hook import SwanLabHook as SwanLabHook
from .sync_buffers_hook import SyncBuffersHook as SyncBuffersHook
from .system_monitor_hook import SystemMonitorHook as SystemMonitorHook
from .tensorboard_hook import TensorBoardHook as TensorBoardHook
from .test_hook import TestHook as TestHook
from .throughput_hook import ThroughputHook as ThroughputHook
from .time_limit_hook import TimeLimitHook as TimeLimitHook
from .time_tracking_hook import TimeTrackingHook as TimeTrackingHook
from .trackio_hook import TrackioHook as TrackioHook
from .train_metrics_hook import TrainMetricsHook as TrainMetricsHook
from .uneven_batch_hook import UnevenBatchHook as UnevenBatchHook
from .value_updater_hook import ValueUpdaterHook as ValueUpdaterHook
from .visualization_hook import DetVisualizationHook as DetVisualizationHook
from .visualization_hook import SegVisualizationHook as SegVisualizationHook
from .visualization_hook import VisualizationHook as VisualizationHook
from .wandb_hook import WandbHook as WandbHook
