"""Import by string, for configs that the user named."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from hookline.registry import FORBIDDEN_MODULES


def import_modules_from_strings(imports: str | list[str] | None, allow_failed_imports: bool = False) -> Any:
    """The modules of these names; one for a string, a list for a list."""
    if not imports:
        return None
    names = [imports] if isinstance(imports, str) else list(imports)
    modules = []
    for name in names:
        _refuse(name)
        try:
            modules.append(importlib.import_module(name))
        except ImportError as error:
            if not allow_failed_imports:
                raise ImportError(f"Failed to import {name}: {error}") from error
            warnings.warn(f"{name} failed to import and is ignored: {error}", UserWarning, stacklevel=2)
            modules.append(None)  # type: ignore[arg-type]
    return modules[0] if isinstance(imports, str) else modules


def get_object_from_string(obj_name: str) -> Any:
    """What a dotted path names, None if there is nothing."""
    _refuse(obj_name)
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


def _refuse(path: str) -> None:
    if path.split(".")[0] in FORBIDDEN_MODULES:
        raise ImportError(f"{path!r} may not be used from a config")
