"""`mmengine.hooks`: the base class and all built-in hooks of MMEngine."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine.hooks.checkpoint_hook import CheckpointHook
from hookline.compat.mmengine.hooks.early_stopping_hook import EarlyStoppingHook
from hookline.compat.mmengine.hooks.ema_hook import EMAHook
from hookline.compat.mmengine.hooks.empty_cache_hook import EmptyCacheHook
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.hooks.iter_timer_hook import IterTimerHook
from hookline.compat.mmengine.hooks.logger_hook import LoggerHook
from hookline.compat.mmengine.hooks.naive_visualization_hook import NaiveVisualizationHook
from hookline.compat.mmengine.hooks.param_scheduler_hook import ParamSchedulerHook
from hookline.compat.mmengine.hooks.profiler_hook import ProfilerHook
from hookline.compat.mmengine.hooks.runtime_info_hook import RuntimeInfoHook
from hookline.compat.mmengine.hooks.sampler_seed_hook import DistSamplerSeedHook
from hookline.compat.mmengine.hooks.sync_buffer_hook import SyncBuffersHook
from hookline.compat.mmengine.hooks.test_time_aug_hook import PrepareTTAHook

__all__ = [
    "CheckpointHook",
    "DistSamplerSeedHook",
    "EMAHook",
    "EarlyStoppingHook",
    "EmptyCacheHook",
    "Hook",
    "IterTimerHook",
    "LoggerHook",
    "NaiveVisualizationHook",
    "ParamSchedulerHook",
    "PrepareTTAHook",
    "ProfilerHook",
    "RuntimeInfoHook",
    "SyncBuffersHook",
]
__getattr__ = not_covered(
    __name__,
    __all__,
    {"NPUProfilerHook": "Ascend NPUs are not covered; ProfilerHook profiles CPU and CUDA"},
)
