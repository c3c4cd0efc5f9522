"""What a compatibility module says about a name that it does not cover."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterable
from typing import Any

from hookline.errors import suggest

IMPORT_FROM = dis.opmap["IMPORT_FROM"]


def not_covered(module: str, offered: Iterable[str], instead: dict[str, str] | None = None) -> Callable[[str], Any]:
    """A module's `__getattr__`: an error that names what is missing and the nearest thing that is there.

    `instead` says for some names what to use in their place. For `from module import name` the error is an ImportError,
    because Python would replace the text of an AttributeError by its own.
    """
    names = sorted(name for name in offered if not name.startswith("_"))

    def __getattr__(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        original = module.removeprefix("hookline.compat.")
        hint = f"; {instead[name]}" if instead and name in instead else suggest(name, names)
        text = f"{original}.{name} is not covered by Hookline's {module}{hint}"
        caller = sys._getframe(1)
        imported = caller.f_lasti >= 0 and caller.f_code.co_code[caller.f_lasti] == IMPORT_FROM
        raise (ImportError(text, name=module) if imported else AttributeError(text))

    return __getattr__
