"""The parameters that hooks need because they have no defaults."""

from __future__ import annotations

from typing import Any

MINIMAL: dict[str, dict[str, Any]] = {
    "ActivationCheckpointHook": {"modules": "Linear"},
    "CosineAnnealingLrUpdaterHook": {"min_lr": 0.001},
    "CosineAnnealingMomentumUpdaterHook": {"min_momentum": 0.5},
    "CosineRestartLrUpdaterHook": {
        "periods": [5, 5],
        "restart_weights": [1.0, 0.5],
        "min_lr": 0.001,
        "by_epoch": False,
    },
    "ExpLrUpdaterHook": {"gamma": 0.9},
    "FlatCosineAnnealingLrUpdaterHook": {"min_lr": 0.001},
    "FreezeHook": {"params": "0"},
    "InvLrUpdaterHook": {"gamma": 0.1},
    "LinearAnnealingLrUpdaterHook": {"min_lr": 0.001},
    "LinearAnnealingMomentumUpdaterHook": {"min_momentum": 0.5},
    "OneCycleLrUpdaterHook": {"max_lr": 0.1},
    "StepLrUpdaterHook": {"step": 1},
    "StepMomentumUpdaterHook": {"step": 1},
    "WSDLrUpdaterHook": {"min_lr": 0.001},
    "ValueUpdaterHook": {"value": "lr", "policy": {"type": "cosine", "to": 0.001}},
    "TimeLimitHook": {"limit": "1h"},
    "StopAtHook": {"iter": 100},
}

# Hooks that need a function, which a config file cannot contain.
OF_FUNCTIONS = {"ClosureHook", "LambdaHook"}
