"""Hooks of Hookline that take their parameters as a dict: `TimeTrackingHook({"frequency": 1})`.

They are not registered. A config that names one gets Hookline's, which differs in the constructor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hookline import hooks
from hookline.engine import HOOKS, BaseHook
from hookline.errors import ConfigError


class _FromConfig(BaseHook):
    """A hook of Hookline whose constructor takes a config dict, which is checked first."""

    registered_as: ClassVar[str]

    def __init__(self, config: Mapping[str, Any] | None = None, **parameters: Any) -> None:
        given = {"type": self.registered_as, **(config or {}), **parameters}
        problems = HOOKS.check(given)
        if problems:
            raise ConfigError(problems)
        super().__init__(**HOOKS.arguments(given))
        for key in HOOKS.COMMON:
            if key in given:
                setattr(self, key, given[key])


class TimeTrackingHook(_FromConfig, hooks.TimeTrackingHook):
    """See `hookline.hooks.TimeTrackingHook`."""

    registered_as = "TimeTrackingHook"


class SystemMonitorHook(_FromConfig, hooks.SystemMonitorHook):
    """See `hookline.hooks.SystemMonitorHook`."""

    registered_as = "SystemMonitorHook"


class FeatureMapHook(_FromConfig, hooks.FeatureMapHook):
    """See `hookline.hooks.FeatureMapHook`."""

    registered_as = "FeatureMapHook"


class GradientFlowHook(_FromConfig, hooks.GradientFlowHook):
    """See `hookline.hooks.GradientFlowHook`."""

    registered_as = "GradientFlowHook"
