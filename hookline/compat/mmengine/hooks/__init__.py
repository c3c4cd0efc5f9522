"""`mmengine.hooks`: the base class, and the hooks of MMEngine's document."""

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.hooks.checkpoint_hook import CheckpointHook
from hookline.compat.mmengine.hooks.ema_hook import EMAHook
from hookline.compat.mmengine.hooks.empty_cache_hook import EmptyCacheHook
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.hooks.iter_timer_hook import IterTimerHook
from hookline.compat.mmengine.hooks.logger_hook import LoggerHook
from hookline.compat.mmengine.hooks.param_scheduler_hook import ParamSchedulerHook
from hookline.compat.mmengine.hooks.runtime_info_hook import RuntimeInfoHook
from hookline.compat.mmengine.hooks.sampler_seed_hook import DistSamplerSeedHook
from hookline.compat.mmengine.hooks.sync_buffer_hook import SyncBuffersHook

__all__ = [
    "CheckpointHook",
    "DistSamplerSeedHook",
    "EMAHook",
    "EmptyCacheHook",
    "Hook",
    "IterTimerHook",
    "LoggerHook",
    "ParamSchedulerHook",
    "RuntimeInfoHook",
    "SyncBuffersHook",
]
__getattr__ = not_covered(__name__, __all__, advice=ADVICE)
