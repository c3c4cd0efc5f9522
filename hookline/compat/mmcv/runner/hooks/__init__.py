"""All hooks of MMCV 1.x, with its names, parameters and defaults."""

from hookline.compat.missing import not_covered
from hookline.compat.mmcv.runner.hooks.checkpoint import CheckpointHook
from hookline.compat.mmcv.runner.hooks.closure import ClosureHook
from hookline.compat.mmcv.runner.hooks.ema import EMAHook
from hookline.compat.mmcv.runner.hooks.evaluation import DistEvalHook, EvalHook
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.compat.mmcv.runner.hooks.iter_timer import IterTimerHook
from hookline.compat.mmcv.runner.hooks.logger import (
    ClearMLLoggerHook,
    DvcliveLoggerHook,
    LoggerHook,
    MlflowLoggerHook,
    NeptuneLoggerHook,
    TensorboardLoggerHook,
    TextLoggerHook,
    WandbLoggerHook,
)
from hookline.compat.mmcv.runner.hooks.lr_updater import (
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
from hookline.compat.mmcv.runner.hooks.memory import EmptyCacheHook
from hookline.compat.mmcv.runner.hooks.momentum_updater import (
    CosineAnnealingMomentumUpdaterHook,
    CyclicMomentumUpdaterHook,
    LinearAnnealingMomentumUpdaterHook,
    MomentumUpdaterHook,
    OneCycleMomentumUpdaterHook,
    StepMomentumUpdaterHook,
)
from hookline.compat.mmcv.runner.hooks.optimizer import (
    Fp16OptimizerHook,
    GradientCumulativeFp16OptimizerHook,
    GradientCumulativeOptimizerHook,
    OptimizerHook,
)
from hookline.compat.mmcv.runner.hooks.profiler import ProfilerHook
from hookline.compat.mmcv.runner.hooks.sampler_seed import DistSamplerSeedHook
from hookline.compat.mmcv.runner.hooks.sync_buffer import SyncBuffersHook

__all__ = [
    "HOOKS",
    "CheckpointHook",
    "ClearMLLoggerHook",
    "ClosureHook",
    "CosineAnnealingLrUpdaterHook",
    "CosineAnnealingMomentumUpdaterHook",
    "CosineRestartLrUpdaterHook",
    "CyclicLrUpdaterHook",
    "CyclicMomentumUpdaterHook",
    "DistEvalHook",
    "DistSamplerSeedHook",
    "DvcliveLoggerHook",
    "EMAHook",
    "EmptyCacheHook",
    "EvalHook",
    "ExpLrUpdaterHook",
    "FixedLrUpdaterHook",
    "FlatCosineAnnealingLrUpdaterHook",
    "Fp16OptimizerHook",
    "GradientCumulativeFp16OptimizerHook",
    "GradientCumulativeOptimizerHook",
    "Hook",
    "InvLrUpdaterHook",
    "IterTimerHook",
    "LinearAnnealingLrUpdaterHook",
    "LinearAnnealingMomentumUpdaterHook",
    "LoggerHook",
    "LrUpdaterHook",
    "MlflowLoggerHook",
    "MomentumUpdaterHook",
    "NeptuneLoggerHook",
    "OneCycleLrUpdaterHook",
    "OneCycleMomentumUpdaterHook",
    "OptimizerHook",
    "PolyLrUpdaterHook",
    "ProfilerHook",
    "StepLrUpdaterHook",
    "StepMomentumUpdaterHook",
    "SyncBuffersHook",
    "TensorboardLoggerHook",
    "TextLoggerHook",
    "WandbLoggerHook",
]

CheckPointHook = CheckpointHook  # the spelling in the headings of MMCV's documentation

__getattr__ = not_covered(__name__, __all__)
