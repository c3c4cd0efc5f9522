"""Checks of a hook before it is registered."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from hookline.arguments import bind
from hookline.diagnosis import FOREIGN_SITES
from hookline.errors import RegistrationError, Suggestion, suggest
from hookline.hook_registry import check_common
from hookline.secrets import mask_text


def check_hook(hook: Any, sites: Collection[str], services: Mapping[str, Any]) -> None:
    """Raise RegistrationError if a hook cannot work, whatever the run is.

    Args:
        hook: The hook.
        sites: The sites that a loop calls.
        services: Objects that hook methods may name as arguments.
    """
    common = {"priority": hook.priority, "frequency": hook.frequency}
    for problem in check_common(hook.name, common):
        raise RegistrationError(problem)
    if hook.ranks not in ("all", "main", "collective"):
        message = "'ranks' must be 'all', 'main' or 'collective'"
        raise RegistrationError(message, component=hook.name, parameter="ranks", value=hook.ranks)
    for name in dir(type(hook)):
        member = inspect.getattr_static(type(hook), name)
        if isinstance(member, dataclasses.Field):
            message = f"{name!r} is declared with state(...), which needs @dataclass on the class"
            raise RegistrationError(message, component=hook.name, parameter=name)
        if inspect.isfunction(member):
            _check_site_name(hook, name, sites)
    for site in (*sites, *hook.extra_sites):
        method = hook.site_method(site)
        if method is not None:
            bind(method, f"{hook.name}.{method.__name__}", services)


def check_owner(hook: Any, others: Iterable[Any], site: str) -> None:
    """Raise RegistrationError if a hook and another one both own a site."""
    if hook.site_method(site) is None:
        return
    for other in others:
        if other.site_method(site) is not None:
            message = f"both this hook and {other.name} own {site!r}, and only one hook can"
            advice = merge_advice(hook, other)
            if not advice:
                advice = f"remove one, or call runner.unregister_hook({other.name!r}) first"
            suggestion = Suggestion(advice=advice)
            raise RegistrationError(message, component=hook.name, site=site, suggestion=suggestion)


def merge_advice(hook: Any, other: Any) -> str:
    """Return the advice to keep the hook whose class extends that of the other; "" if none does."""
    kept, removed = type(hook), type(other)
    if issubclass(removed, kept):
        kept, removed = removed, kept
    if kept is removed or not issubclass(kept, removed):
        return ""
    return f"{kept.__name__} has the parameters of {removed.__name__}, too: keep it alone"


def unique_name(hook: Any, taken: Collection[str]) -> str:
    """Return the name of a hook, by default that of its class, numbered if it is taken.

    Secrets in it are masked, because logs and files have it.

    Raises:
        RegistrationError: If another hook has the name that the user gave.
    """
    base = mask_text(hook.name) or type(hook).__name__
    if base in taken and base != type(hook).__name__:
        message = "a hook of this name is already registered; names are unique in a runner"
        raise RegistrationError(message, component=base, parameter="name")
    name = base
    number = 1
    while name in taken:
        number += 1
        name = f"{base}_{number}"
    return name


def _check_site_name(hook: Any, name: str, sites: Collection[str]) -> None:
    known = {*sites, *hook.site_aliases, *hook.extra_sites}
    if name in known or name.startswith("_"):
        return
    if name in FOREIGN_SITES:
        message = f"{name!r} is a site of another framework and would never be called"
        suggestion = Suggestion(FOREIGN_SITES[name])
        raise RegistrationError(message, component=hook.name, site=name, suggestion=suggestion)
    if name.startswith(("before_", "after_")):
        message = f"{name!r} is not a site (declare your own in extra_sites)"
        suggestion = suggest(name, sites)
        raise RegistrationError(message, component=hook.name, site=name, suggestion=suggestion)
