"""The registered hooks, and a set-up of each in which a run of ten iterations makes it act."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from typing import Any

import pytest

from hookline import HOOKS
from hookline.engine import BaseHook
from tests.contracts.minimal import MINIMAL
from tests.contracts.parameters.rows import Below


def do_nothing() -> None: ...


FUNCTION = {"fn_name": "after_train_iter", "fn": do_nothing}
OFFLINE = {"interval": 3, "offline": True}

# Instead of the minimal config, where that leaves a hook idle in so short a run.
TOO_LARGE = {"init_scale": 2.0**127}  # the gradients of the first steps are infinite
ACTIVE: dict[str, dict[str, Any]] = {
    "AmpOptimizerHook": {"cumulative_iters": 2, "dtype": "float16", "loss_scale": TOO_LARGE},
    "AttentionMapHook": {"frequency": 3},
    "CAMHook": {"interval": 3},
    "CheckInvalidLossHook": {"interval": 3},
    "CheckpointHook": {"by_epoch": False, "interval": 3, "max_keep_ckpts": 2, "keep_best": 2},
    "ClearMLHook": OFFLINE,
    "DVCLiveHook": {"interval": 3},
    "DetVisualizationHook": {"interval": 3},
    "EMAHook": {"momentum": 0.9, "warm_up": 0, "update_buffers": True},
    "EarlyStoppingHook": {"min_delta": 10.0, "patience": 1},
    "EmptyCacheHook": {"after_iter": True},
    "EvalHook": {"by_epoch": False, "interval": 4},
    "ExportHook": {"formats": ["safetensors"]},
    "FeatureMapHook": {"frequency": 3},
    "FlatCosineAnnealingLrUpdaterHook": {"start_percent": 0.25, "by_epoch": False},
    "Fp16OptimizerHook": {"loss_scale": TOO_LARGE},
    "FreezeHook": {"end": 1},
    "GradientCumulativeFp16OptimizerHook": {"cumulative_iters": 2, "loss_scale": TOO_LARGE},
    "GradientCumulativeOptimizerHook": {"cumulative_iters": 2},
    "GradientFlowHook": {"frequency": 3},
    "HistogramHook": {"interval": 3},
    "IterTimerHook": {"interval": 3},
    "LRSchedulerHook": {"scheduler": {"type": "StepLR", "step_size": 2}},
    "LoggerHook": {"interval": 3},
    "MLflowHook": {"interval": 3, "tracking_uri": Below("mlruns")},
    "MemoryProfilerHook": {"interval": 3},
    "NeptuneHook": {"interval": 3},
    "OptimizerHook": {"grad_clip": {"max_norm": 0.5}},
    "ParamSchedulerHook": {"by_epoch": False},
    "PeriodicWriterHook": {"period": 3},
    "PreciseBNHook": {"num_iter": 2, "period": 3},
    "ProfilerHook": {"schedule": {"wait": 1, "warmup": 1, "active": 2, "repeat": 1}},
    "RollbackHook": {"spike": 50.0, "lr_factor": 0.5},
    "SaliencyHook": {"interval": 3},
    "SegVisualizationHook": {"interval": 3},
    "StopAtHook": {"iter": 8},
    "SwanLabHook": OFFLINE,
    "SystemMonitorHook": {"frequency": 1, "interval": 0.01},
    "TensorBoardHook": {
        "interval": 3,
        "log_graph": True,
        "log_images": True,
        "image_interval": 3,
    },
    "TextLoggerHook": {"interval": 3},
    "ThroughputHook": {"interval": 3},
    "TrackioHook": {"interval": 3},
    "TrainMetricsHook": {"interval": 4},
    "ValueUpdaterHook": {"by_epoch": False},
    "VisualizationHook": {"interval": 3},
    "WSDLrUpdaterHook": {"by_epoch": False, "decay_ratio": 0.8},
    "WandbHook": {"interval": 3},
}

# Hooks that change the weights, or the length of the run. All others only observe.
ALTERS_TRAINING = {
    "AmpOptimizerHook",
    "CosineAnnealingLrUpdaterHook",
    "CosineAnnealingMomentumUpdaterHook",
    "CosineRestartLrUpdaterHook",
    "CyclicLrUpdaterHook",
    "CyclicMomentumUpdaterHook",
    "EarlyStoppingHook",
    "ExpLrUpdaterHook",
    "FlatCosineAnnealingLrUpdaterHook",
    "Fp16OptimizerHook",
    "FreezeHook",
    "GradientCumulativeFp16OptimizerHook",
    "GradientCumulativeOptimizerHook",
    "InvLrUpdaterHook",
    "LRSchedulerHook",
    "LinearAnnealingLrUpdaterHook",
    "LinearAnnealingMomentumUpdaterHook",
    "ManualOptimizationHook",
    "MicroBatchHook",
    "OneCycleLrUpdaterHook",
    "OneCycleMomentumUpdaterHook",
    "OptimizerHook",
    "ParamSchedulerHook",
    "PolyLrUpdaterHook",
    "PreciseBNHook",
    "RollbackHook",
    "SAMHook",
    "StepLrUpdaterHook",
    "StepMomentumUpdaterHook",
    "StopAtHook",
    "ValueUpdaterHook",
    "WSDLrUpdaterHook",
}


def registered() -> dict[str, type[BaseHook]]:
    """Return the built-in hooks by every name that a config can use."""
    known = {}
    for name, cls in HOOKS.items():
        if cls.__module__.startswith("hookline."):
            known[name] = cls
    return known


def hook_classes() -> list[type[BaseHook]]:
    """Return the classes of the built-in hooks; some have a second name."""
    return sorted(set(registered().values()), key=lambda cls: cls.__name__)


def minimal_config(name: str) -> dict[str, Any]:
    """Return the shortest config from which a hook can be built."""
    needed = FUNCTION if registered()[name] is HOOKS.get("LambdaHook") else {}
    return {"type": name, **MINIMAL.get(name, needed)}


def active_config(name: str) -> dict[str, Any]:
    """Return a config with which a hook acts in a run of ten iterations."""
    return {**minimal_config(name), **ACTIVE.get(name, {})}


def cases(names: Iterable[str]) -> list[Any]:
    """Return hooks' names as parameters of a test, which is skipped where a package is missing."""
    found = []
    for name in names:
        marks = []
        package = getattr(HOOKS.get(name), "module", None)
        if package is not None and importlib.util.find_spec(package) is None:
            marks.append(pytest.mark.skip(reason=f"{package} is not installed"))
        elif name == "ClearMLHook":  # closing an offline session takes ten seconds and more
            marks.append(pytest.mark.exhaustive)
        found.append(pytest.param(name, marks=marks))
    return found
