"""Hooks that a module offers under their names although other modules define them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def offer(module: str, *names: str) -> Callable[[str], Any]:
    """Return a `__getattr__` that offers hooks of other modules, imported on first use."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module("hookline.hooks"), name)

    return get
