"""Means of scalars that are reported under other names, and the check of their options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from hookline.errors import ConfigError, suggest

KEYS = ("of", "over")
PERIODS = ("epoch", "global")


class NamedMean(NamedTuple):
    """A mean of a scalar that is reported under another name."""

    of: str
    over: int | str  # the number of values, "epoch" or "global"


def check_named_means(component: str, means: Mapping[str, Mapping[str, Any]]) -> None:
    """Raise ConfigError if the parameter `means` of a hook is not `{name: {of: …, over: …}}`."""
    for name, options in means.items():
        _check_options(component, name, options)


def _check_options(component: str, name: str, options: Mapping[str, Any]) -> None:
    path = ("means", name)
    about: dict[str, Any] = {"component": component, "parameter": "means"}
    for key in options:
        if key not in KEYS:
            message = f"unknown key {key!r} in means.{name}"
            raise ConfigError(message, path=(*path, key), suggestion=suggest(key, KEYS), **about)
    if len(options) < len(KEYS):
        message = f"means.{name} needs 'of' (a scalar) and 'over'"
        raise ConfigError(message, path=path, value=dict(options), **about)
    over = options["over"]
    if over not in PERIODS and not (isinstance(over, int) and over > 0):
        message = f"'over' in means.{name} must be a number of values, 'epoch' or 'global'"
        raise ConfigError(message, path=(*path, "over"), value=over, **about)
