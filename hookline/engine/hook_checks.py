"""Checks of a hook before it is registered."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from hookline.arguments import bind
from hookline.diagnosis import SITES_ELSEWHERE
from hookline.engine.hook import BaseHook
from hookline.engine.sites import OWNED, SITE_NAMES
from hookline.errors import RegistrationError, Suggestion, suggest
from hookline.hook_registry import check_common


def validate_hook(hook: BaseHook, others: Iterable[BaseHook], services: Mapping[str, Any]) -> None:
    """Raise RegistrationError if a hook could not work beside others."""
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
            _check_site_name(hook, name)
    for site in (*SITE_NAMES, *hook.extra_sites):
        method = hook.site_method(site)
        if method is not None:
            bind(method, f"{hook.name}.{method.__name__}", services)
    for site in OWNED:
        _check_owner(hook, others, site)


def validate_alone(hook: BaseHook) -> None:
    """Raise RegistrationError if no runner could register a hook, whatever its other hooks are.

    A hook with site aliases is skipped: it may need services that its own runner provides.
    """
    if hook.site_aliases:
        return
    given_name = hook.name
    hook.name = hook.name or type(hook).__name__
    try:
        validate_hook(hook, (), {})
    finally:
        hook.name = given_name


def _check_site_name(hook: BaseHook, name: str) -> None:
    known = {*SITE_NAMES, *hook.site_aliases, *hook.extra_sites}
    if name in known or name.startswith("_"):
        return
    if name in SITES_ELSEWHERE:
        message = f"{name!r} is a site of another framework and would never be called"
        suggestion = Suggestion(SITES_ELSEWHERE[name])
        raise RegistrationError(message, component=hook.name, site=name, suggestion=suggestion)
    if name.startswith(("before_", "after_")):
        message = f"{name!r} is not a site (declare your own in extra_sites)"
        suggestion = suggest(name, SITE_NAMES)
        raise RegistrationError(message, component=hook.name, site=name, suggestion=suggestion)


def _check_owner(hook: BaseHook, others: Iterable[BaseHook], site: str) -> None:
    if hook.site_method(site) is None:
        return
    for other in others:
        if other.site_method(site) is not None:
            message = f"both this hook and {other.name} own {site!r}, and only one hook can"
            advice = f"remove one, or call runner.unregister_hook({other.name!r}) first"
            suggestion = Suggestion(advice=advice)
            raise RegistrationError(message, component=hook.name, site=site, suggestion=suggestion)
