"""Errors for names of other frameworks that a compatibility module does not cover."""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hookline.errors import suggest

log = logging.getLogger("hookline")


def not_covered(
    module: str,
    offered: Iterable[str] | None = None,
    instead: Mapping[str, str] | None = None,
    lazy: Mapping[str, str] | None = None,
    advice: str = "",
) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that reports missing names, with a suggestion.

    Args:
        module: The name of the module.
        offered: The names that it covers; None for those that are defined in its package.
        instead: Advice for some of the names that it does not cover.
        lazy: Names that are imported on use, each with its module.
        advice: Advice for all other names.
    """
    lazy = lazy or {}
    instead = instead or {}
    original = module.removeprefix("hookline.compat.")

    def __getattr__(name: str) -> Any:
        if name in lazy:
            return getattr(importlib.import_module(lazy[name]), name)
        if name.startswith("_") or _is_submodule(module, name):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        known = {*(_own_names(module) if offered is None else offered), *lazy}
        public = sorted(each for each in known if not each.startswith("_"))
        hint = f"; {instead[name]}" if name in instead else str(suggest(name, public))
        if advice and name not in instead:
            hint += f"; {advice}"
        text = f"{original}.{name} is not covered by Hookline's {module}{hint}"
        # Also logged: `from module import name` replaces the text of an AttributeError.
        log.warning("%s", text)
        raise AttributeError(text)

    return __getattr__


def _own_names(module: str) -> list[str]:
    """Return the names in a module that are defined in its package, without other imports."""
    package = ".".join(module.split(".")[:3])  # such as hookline.compat.mmengine
    names = []
    for name, value in vars(sys.modules[module]).items():
        if str(getattr(value, "__module__", "")).startswith(package):
            names.append(name)
    return names


def _is_submodule(module: str, name: str) -> bool:
    """Return whether a name is a submodule; `from module import name` imports it after this."""
    is_package = hasattr(sys.modules[module], "__path__")
    return is_package and importlib.util.find_spec(f"{module}.{name}") is not None
