"""Hookline: a training engine for PyTorch in which everything beyond the forward pass is a hook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hookline.lazy import on_use
from hookline.version import __version__

# Where each public name lives. They are imported on use, so that `import hookline` costs next to nothing.
_HOMES = {
    "Runner": "hookline.runner",
    "BaseHook": "hookline.engine",
    "Hook": "hookline.engine",
    "HOOKS": "hookline.engine",
    "Interrupted": "hookline.engine",
    "Priority": "hookline.engine",
    "get_priority": "hookline.engine",
    "state": "hookline.engine",
    "MODELS": "hookline.models",
    "DATASETS": "hookline.data",
    "METRICS": "hookline.metrics",
    "OPTIMIZERS": "hookline.optim",
    "SCHEDULERS": "hookline.optim",
    "LOSSES": "hookline.optim",
    "WRITERS": "hookline.events",
    "ConfigError": "hookline.errors",
    "HooklineError": "hookline.errors",
    "build_hook": "hookline.hooks",
    "build_hooks": "hookline.hooks",
    "drive": "hookline.driving",
    "get_default_hooks": "hookline.hooks",
    "load_config": "hookline.config",
    "make_loader": "hookline.data",
    "HookRegistry": "hookline.engine",
}
__getattr__ = on_use(__name__, _HOMES)

if TYPE_CHECKING:
    from hookline.config import load_config
    from hookline.data import DATASETS, make_loader
    from hookline.driving import drive
    from hookline.engine import HOOKS, BaseHook, Hook, Interrupted, Priority, get_priority, state
    from hookline.errors import ConfigError, HooklineError
    from hookline.events import WRITERS
    from hookline.hooks import build_hook, build_hooks, get_default_hooks
    from hookline.metrics import METRICS
    from hookline.models import MODELS
    from hookline.optim import LOSSES, OPTIMIZERS, SCHEDULERS
    from hookline.runner import Runner

    HookRegistry = HOOKS

__all__ = [
    "DATASETS",
    "HOOKS",
    "LOSSES",
    "METRICS",
    "MODELS",
    "OPTIMIZERS",
    "SCHEDULERS",
    "WRITERS",
    "BaseHook",
    "ConfigError",
    "Hook",
    "HookRegistry",
    "HooklineError",
    "Interrupted",
    "Priority",
    "Runner",
    "__version__",
    "build_hook",
    "build_hooks",
    "drive",
    "get_default_hooks",
    "get_priority",
    "load_config",
    "make_loader",
    "state",
]


def __dir__() -> list[str]:
    return sorted(__all__)
