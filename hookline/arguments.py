"""The arguments that hook methods may name, and calls that pass them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from hookline.errors import RegistrationError, suggest

Call = Callable[[Any], Any]

# The arguments that hook methods may name, with the runner attribute that each one reads.
# An empty attribute stands for the runner itself.
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
    """Return a function of the runner that calls a hook method with the arguments that it names.

    Args:
        method: The bound method of a hook.
        label: The hook and its method, for error messages.
        services: Objects that the method may name as arguments.

    Raises:
        RegistrationError: If an argument without a default is unknown.
    """
    positional: list[str] = []
    keyword: dict[str, str] = {}
    has_skipped = False  # arguments after a skipped one must be passed by keyword
    signature = inspect.signature(method).parameters
    variadic = [p for p in signature.values() if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    if len(variadic) == len(signature) and any(p.kind is p.VAR_POSITIONAL for p in variadic):
        return method  # A method with only `*args` gets the runner.
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
            has_skipped = True
        elif parameter.kind is parameter.KEYWORD_ONLY or has_skipped:
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


def get_argument(runner: object, services: Mapping[str, Any], name: str) -> Any:
    """Return a service or the value of an argument; None if the name is unknown."""
    if name in services:
        return services[name]
    if name not in ARGUMENTS:
        return None
    attribute = ARGUMENTS[name]
    return getattr(runner, attribute) if attribute else runner


def set_arguments(runner: object, site: str, values: Mapping[str, Any]) -> None:
    """Set the arguments that are passed to `call_hook(site, …)` on the runner.

    Raises:
        ValueError: If no hook method can receive such an argument.
    """
    for name, value in values.items():
        if not ARGUMENTS.get(name):
            message = f"call_hook({site!r}): unknown argument {name!r}"
            raise ValueError(f"{message}{suggest(name, ARGUMENTS)}")
        setattr(runner, ARGUMENTS[name], value)
