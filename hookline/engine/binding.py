"""Check a hook before it is registered, and bind its methods to the arguments that they name."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from hookline.diagnosis import SITES_ELSEWHERE
from hookline.engine.hook import BaseHook, check_common
from hookline.engine.sites import OWNED, SITE_NAMES
from hookline.errors import RegistrationError, Suggestion, suggest

Call = Callable[[Any], Any]

# The arguments that hook methods may name, and the attribute of the runner that each one is.
ARGUMENTS = {
    "runner": "",
    "trainer": "",
    "epoch": "epoch",
    "iter": "iter",
    "step": "iter",
    "inner_iter": "inner_iter",
    "batch_idx": "batch_idx",
    "batch": "batch",
    "data_batch": "batch",
    "outputs": "outputs",
    "loss": "loss",
    "metrics": "metrics",
    "checkpoint": "checkpoint",
    "exception": "exception",
    "model": "model",
    "optimizer": "optimizer",
    "scheduler": "scheduler",
    "train_loader": "train_loader",
    "val_loader": "val_loader",
    "test_loader": "test_loader",
    "device": "device",
    "config": "config",
    "events": "events",
    "logger": "logger",
    "work_dir": "work_dir",
    "experiment_dir": "work_dir",
    "max_epochs": "max_epochs",
    "max_iters": "max_iters",
}


def bind(method: Callable[..., Any], label: str, services: Mapping[str, Any]) -> Call:
    """Return a callable of the runner that passes a hook method the arguments that it names."""
    positional: list[str] = []
    keyword: dict[str, str] = {}
    skipped = False
    signature = inspect.signature(method).parameters
    variadic = [p for p in signature.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(variadic) == len(signature) and any(p.kind is p.VAR_POSITIONAL for p in variadic):
        return method  # `*args` alone gets the runner
    for name, parameter in signature.items():
        if parameter in variadic:
            continue
        path = f"sites.services.{name}" if name in services else ARGUMENTS.get(name)
        if path is None:
            if parameter.default is parameter.empty:
                suggestion = suggest(name, [*ARGUMENTS, *services])
                message = f"unknown argument {name!r}"
                raise RegistrationError(
                    message, component=label, parameter=name, suggestion=suggestion
                )
            skipped = True
        elif parameter.kind is parameter.KEYWORD_ONLY or skipped:
            keyword[name] = path
        else:
            positional.append(path)
    return _make_call(method, positional, keyword)


def _make_call(method: Callable[..., Any], positional: list[str], keyword: dict[str, str]) -> Call:
    if positional == [""] and not keyword:
        return method
    if len(positional) > 1 and "" not in positional and not keyword:
        get_all = attrgetter(*positional)
        return lambda runner: method(*get_all(runner))
    getters = [_getter(path) for path in positional]
    if len(getters) == 1 and not keyword:
        get = getters[0]
        return lambda runner: method(get(runner))
    named = {name: _getter(path) for name, path in keyword.items()}
    if named:
        return lambda runner: method(
            *[get(runner) for get in getters],
            **{name: get(runner) for name, get in named.items()},
        )
    return lambda runner: method(*[get(runner) for get in getters])


def _getter(path: str) -> Call:
    return attrgetter(path) if path else lambda runner: runner


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
