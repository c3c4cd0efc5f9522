"""Call plain functions at sites."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hookline.engine import HOOKS, SITE_NAMES, BaseHook
from hookline.errors import ConfigError, suggest


@HOOKS.register()
@HOOKS.register("ClosureHook")
class LambdaHook(BaseHook):
    """Call functions at sites.

    Pass functions under the names of their sites, or one function as `fn_name` and `fn`. A function
    receives `runner`, or the values that its parameters name, like a method of a hook. A config
    cannot hold functions, so this hook is made in Python.

    Args:
        fn_name: Site at which `fn` is called.
        fn: Function to call at `fn_name`.
        **functions: Functions to call, by site.

    Example:
        ```python
        from hookline.hooks import LambdaHook

        hook = LambdaHook(after_epoch=lambda epoch, metrics: print(epoch, metrics))
        ```
    """

    def __init__(
        self,
        fn_name: str | None = None,
        fn: Callable[..., Any] | None = None,
        **functions: Callable[..., Any],
    ) -> None:
        if fn_name is not None and fn is not None:
            functions[fn_name] = fn
        if not functions or (fn_name is None) != (fn is None):
            message = "needs a function for a site, as in LambdaHook(after_epoch=print)"
            raise ConfigError(message, component="LambdaHook")
        for site, function in functions.items():
            if site not in SITE_NAMES:
                raise _unknown_site(site)
            if not callable(function):
                raise ConfigError(
                    f"{site!r} must be a function",
                    path=(site,),
                    component="LambdaHook",
                    parameter=site,
                    value=function,
                )
            setattr(self, site, function)


def _unknown_site(site: str) -> ConfigError:
    known = (*SITE_NAMES, *HOOKS.COMMON)
    about = {"component": "LambdaHook", "parameter": site, "suggestion": suggest(site, known)}
    return ConfigError(f"unknown site {site!r}", path=(site,), **about)
