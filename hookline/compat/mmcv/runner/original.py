"""Names of a replaced module that still come from the module of the installed MMCV."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hookline.compat import overlay
from hookline.compat.missing import not_covered
from hookline.compat.mmcv.errors import ADVICE


def or_original(module: str, names: Iterable[str], offered: Iterable[str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that takes names from the one that it replaces.

    Args:
        module: The name of the module.
        names: The names to take.
        offered: The names that the module has without MMCV, for the error message.
    """
    if overlay.find("mmcv") is None:
        return not_covered(module, offered, advice=ADVICE)
    parent, _, leaf = module.removeprefix("hookline.compat.").rpartition(".")
    original = f"{parent}.{overlay.ORIGINAL}{leaf}"
    taken = dict.fromkeys(names, original)
    return not_covered(module, offered, lazy=taken)
