"""A function as a hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookline.engine import HOOKS, SITE_NAMES, BaseHook
from hookline.errors import suggest


@HOOKS.register()
@HOOKS.register("ClosureHook")
class LambdaHook(BaseHook):
    """Call functions at sites: `LambdaHook(after_epoch=lambda epoch, metrics: print(epoch, metrics))`, or `LambdaHook(site, function)`.

    A function gets `runner`, or whatever it names instead, as a hook's method does.
    """

    def __init__(self, fn_name: str | None = None, fn: Callable[..., Any] | None = None, **functions: Callable[..., Any]) -> None:
        if fn_name is not None and fn is not None:
            functions[fn_name] = fn
        if not functions or (fn_name is None) != (fn is None):
            raise ValueError("LambdaHook needs a function at a site, as in LambdaHook(after_epoch=print)")
        for site, function in functions.items():
            if site not in SITE_NAMES:
                raise ValueError(f"LambdaHook: unknown site {site!r}{suggest(site, SITE_NAMES)}")
            if not callable(function):
                raise TypeError(f"LambdaHook: what is called at {site} must be a function, got {function!r}")
            setattr(self, site, function)
