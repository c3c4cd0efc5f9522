"""Wrap callbacks of other frameworks as hooks, through adapters that packages declare.

An adapter is an entry point in the group `hookline.adapters`. Its name is the top-level package of
the framework; it loads a module with `is_callback(cls)` and `wrap(callback)`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Any

ENTRY_POINT_GROUP = "hookline.adapters"


def adapt(callback: Any) -> Any:
    """Wrap a callback of another framework as a hook; return any other object unchanged."""
    adapter = find_adapter(type(callback))
    return callback if adapter is None else adapter.wrap(callback)


def find_adapter(cls: type) -> ModuleType | None:
    """Return the adapter for a class, if it is a callback of a known framework."""
    for base in cls.__mro__:
        adapter = load_adapter(base.__module__)
        if adapter is not None and adapter.is_callback(cls):
            return adapter
    return None


def load_adapter(path: str) -> ModuleType | None:
    """Load the adapter of the framework that a module or dotted path belongs to.

    Returns None if there is no such adapter, or if the framework is not installed.
    """
    framework = path.partition(".")[0]
    entry = declared_adapters().get(framework)
    if entry is None:
        return None
    try:
        module: ModuleType = entry.load()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != framework:
            raise  # The framework is installed but fails to import another package.
        return None
    return module


@cache
def declared_adapters() -> dict[str, EntryPoint]:
    """Return the declared adapters by the framework's package."""
    return {entry.name: entry for entry in entry_points(group=ENTRY_POINT_GROUP)}
