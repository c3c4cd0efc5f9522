"""A hook that calls a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, SITES, Hook
from hookline.errors import suggest


@HOOKS.register_module()
class ClosureHook(Hook):
    """Calls `fn(runner)` at the site `fn_name`."""

    def __init__(self, fn_name: str, fn: Callable[[Any], Any]) -> None:
        if fn_name not in SITES:
            raise ValueError(f"ClosureHook: there is no site {fn_name!r}{suggest(fn_name, SITES)}")
        if not callable(fn):
            raise TypeError(f"ClosureHook: fn must be a function of the runner, got {fn!r}")
        setattr(self, fn_name, fn)
