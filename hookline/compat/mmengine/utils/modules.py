"""Import modules and objects by name, for configs."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from hookline.imports import FORBIDDEN_MODULES


def import_modules_from_strings(
    imports: str | list[str] | None, allow_failed_imports: bool = False
) -> Any:
    """Import modules by name; return one for a string, and a list for a list."""
    if not imports:
        return None
    names = [imports] if isinstance(imports, str) else list(imports)
    modules = []
    for name in names:
        _check_allowed(name)
        try:
            modules.append(importlib.import_module(name))
        except ImportError as error:
            if not allow_failed_imports:
                raise ImportError(f"Failed to import {name}: {error}") from error
            warnings.warn(
                f"{name} failed to import and is ignored: {error}", UserWarning, stacklevel=2
            )
            modules.append(None)  # type: ignore[arg-type]
    return modules[0] if isinstance(imports, str) else modules


def get_object_from_string(obj_name: str) -> Any:
    """Return the object with a dotted path, or None."""
    _check_allowed(obj_name)
    parts = obj_name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            found = getattr(found, part, None)
        return found
    return None


def _check_allowed(path: str) -> None:
    """Raise ImportError for a module that a config must not use."""
    if path.split(".")[0] in FORBIDDEN_MODULES:
        raise ImportError(f"{path!r} may not be used from a config")
