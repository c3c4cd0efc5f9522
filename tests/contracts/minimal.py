"""What hooks need that have no defaults, and which of them only observe."""

from __future__ import annotations

from typing import Any

# The least that a config must say.
MINIMAL: dict[str, dict[str, Any]] = {
    "CosineAnnealingLrUpdaterHook": {"min_lr": 0.001},
    "CosineAnnealingMomentumUpdaterHook": {"min_momentum": 0.5},
    "CosineRestartLrUpdaterHook": {"periods": [8, 8], "restart_weights": [1.0, 0.5], "min_lr": 0.001, "by_epoch": False},
    "ExpLrUpdaterHook": {"gamma": 0.9},
    "FlatCosineAnnealingLrUpdaterHook": {"min_lr": 0.001},
    "InvLrUpdaterHook": {"gamma": 0.1},
    "LinearAnnealingLrUpdaterHook": {"min_lr": 0.001},
    "LinearAnnealingMomentumUpdaterHook": {"min_momentum": 0.5},
    "OneCycleLrUpdaterHook": {"max_lr": 0.1},
    "StepLrUpdaterHook": {"step": 1},
    "StepMomentumUpdaterHook": {"step": 1},
    "TimeLimitHook": {"limit": "1h"},
    "StopAtHook": {"iter": 100},
}

# Hooks that need parts which these plain runs do not have, or a package that is not installed for the tests.
NEEDS_MORE = {"LRSchedulerHook", "ClearMLHook", "NeptuneHook", "NeptuneLoggerHook", "SwanLabHook"}

# Hooks made of functions, which a config cannot give.
OF_FUNCTIONS = {"ClosureHook", "LambdaHook"}

# Hooks that leave the weights alone.
OBSERVERS = {
    "BatchTraceHook",
    "CheckpointHook",
    "DVCLiveHook",
    "FeatureMapHook",
    "GradientFlowHook",
    "HistogramHook",
    "IterTimerHook",
    "LoggerHook",
    "PeriodicWriterHook",
    "ReportHook",
    "SystemMonitorHook",
    "TensorBoardHook",
    "TextLoggerHook",
    "TimeTrackingHook",
    "WandbHook",
}
