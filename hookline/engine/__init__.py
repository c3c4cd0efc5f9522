"""The engine: sites, hooks, dispatch, seams, loops and the runner."""

from hookline.engine.dispatch import Sites
from hookline.engine.environment import seed_everything
from hookline.engine.hook import HOOKS, BaseHook, state
from hookline.engine.metrics import Metric, Metrics
from hookline.engine.priority import Priority, get_priority
from hookline.engine.run import Interrupted
from hookline.engine.runner import BaseRunner
from hookline.engine.sites import SITE_NAMES, SITES, Site

Hook = BaseHook
HookRegistry = HOOKS

__all__ = [
    "HOOKS",
    "SITES",
    "SITE_NAMES",
    "BaseHook",
    "BaseRunner",
    "Hook",
    "HookRegistry",
    "Interrupted",
    "Metric",
    "Metrics",
    "Priority",
    "Site",
    "Sites",
    "get_priority",
    "seed_everything",
    "state",
]
