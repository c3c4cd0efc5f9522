"""The engine: sites, hooks, requests, the loop and the runner."""

from hookline.engine.hook import HOOKS, BaseHook
from hookline.engine.manager import HookOrConfig
from hookline.engine.runner import BaseRunner
from hookline.engine.sites import SITE_NAMES, SITES
from hookline.errors import Interrupted
from hookline.hook_registry import HookRegistry
from hookline.metrics.base import Metric
from hookline.metrics.results import Metrics
from hookline.priority import Priority, get_priority
from hookline.rng import seed_everything
from hookline.state_fields import state
from hookline.stop_reason import StopReason

Hook = BaseHook

__all__ = [
    "HOOKS",
    "SITES",
    "SITE_NAMES",
    "BaseHook",
    "BaseRunner",
    "Hook",
    "HookOrConfig",
    "HookRegistry",
    "Interrupted",
    "Metric",
    "Metrics",
    "Priority",
    "StopReason",
    "get_priority",
    "seed_everything",
    "state",
]
