"""Callbacks of other frameworks as hooks: who wraps them. The engine knows only names, and imports a wrapper when it meets one."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

# The package that a callback's class, or one of its bases, comes from, and the module whose `wrap(callback)` makes a hook of it.
ADAPTERS = {
    "lightning": "hookline.compat.lightning",
    "pytorch_lightning": "hookline.compat.lightning",
    "transformers": "hookline.compat.transformers",
    "keras": "hookline.compat.keras",
    "composer": "hookline.compat.composer",
}


def adapter_of(cls: type) -> ModuleType | None:
    """The module that wraps instances of a class, if it is a callback of a framework that is known."""
    for base in cls.__mro__:
        adapter = adapter_for(base.__module__)
        if adapter is not None and adapter.is_callback(cls):
            return adapter
    return None


def adapter_for(module: str) -> ModuleType | None:
    """The wrapper of the framework that a module belongs to; importing it also sets up what the framework needs to run on torch."""
    name = ADAPTERS.get(module.partition(".")[0])
    return None if name is None else importlib.import_module(name)


def adapt(callback: Any) -> Any:
    """A hook that drives a callback of another framework; anything else is returned as it is."""
    adapter = adapter_of(type(callback))
    return callback if adapter is None else adapter.wrap(callback)
