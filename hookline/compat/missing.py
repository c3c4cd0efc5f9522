"""Errors for names of other frameworks that a compatibility module does not cover."""

from __future__ import annotations

import dis
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from hookline.errors import suggest

IMPORT_FROM = dis.opmap["IMPORT_FROM"]


def not_covered(
    module: str,
    offered: Iterable[str],
    instead: Mapping[str, str] | None = None,
    lazy: Mapping[str, str] | None = None,
) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module, whose errors suggest a name that exists.

    Args:
        module: The name of the module.
        offered: The names that it covers.
        instead: Advice for some of the names that it does not cover.
        lazy: Names that are imported on use, each with its module.
    """
    lazy = lazy or {}
    instead = instead or {}
    public = sorted(name for name in {*offered, *lazy} if not name.startswith("_"))
    original = module.removeprefix("hookline.compat.")

    def __getattr__(name: str) -> Any:
        if name in lazy:
            return getattr(importlib.import_module(lazy[name]), name)
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        hint = f"; {instead[name]}" if name in instead else suggest(name, public)
        text = f"{original}.{name} is not covered by Hookline's {module}{hint}"
        # `from module import name` replaces the text of an AttributeError, so it gets an
        # ImportError. `getattr` and `hasattr` need the AttributeError. No class can be both, and
        # only the instruction of the caller distinguishes the two cases.
        caller = sys._getframe(1)
        if caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == IMPORT_FROM:
            raise ImportError(text, name=module)
        raise AttributeError(text)

    return __getattr__
