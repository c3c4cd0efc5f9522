"""Add the location in a config to errors that its parts raise during a run."""

from __future__ import annotations

from collections.abc import Mapping

from hookline.config.components import located
from hookline.config.hooks import hook_label
from hookline.config.locations import Config
from hookline.engine import BaseHook
from hookline.errors import ConfigError, KeyPath


class ErrorLocator:
    """A function that adds config locations to errors of the hooks and metrics of one config.

    Some mistakes appear only during a run, such as a metric that does not fit the predictions.
    A hook or metric raises a ConfigError without a location; the runner passes both to this
    object.

    Args:
        config: The config.
        parts: The hooks and metrics by their paths in the config.
    """

    def __init__(self, config: Config, parts: Mapping[KeyPath, object]) -> None:
        self._config = config
        self._parts = dict(parts)

    def __call__(self, part: object, error: ConfigError) -> ConfigError:
        """Return the error with file and line, if the part was built from the config."""
        for path, known in self._parts.items():
            if known is part:
                title = hook_label(part) if isinstance(part, BaseHook) else ""
                return located(error, self._config, path, title)
        return error
