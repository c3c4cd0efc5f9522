"""Re-export hooks from a module that does not define them, imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def reexport_hooks(module: str, *names: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that re-exports hooks of other modules."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return getattr(importlib.import_module("hookline.hooks"), name)

    return get
