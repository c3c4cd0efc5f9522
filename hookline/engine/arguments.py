"""Arguments by name: what a hook method may ask for, resolved once, when the hook is registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from hookline.errors import RegistrationError, suggest

Call = Callable[[Any], Any]

# Where on the runner each name is found; "" is the runner itself.
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
    """A callable of the runner alone that passes a hook method just what it names."""
    positional: list[str] = []
    keyword: dict[str, str] = {}
    skipped = False
    parameters = inspect.signature(method).parameters
    named = {name: p for name, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    if not named and any(p.kind is p.VAR_POSITIONAL for p in parameters.values()):
        return method  # `*args` alone gets the runner
    for name, parameter in named.items():
        path = f"services.{name}" if name in services else ARGUMENTS.get(name)
        if path is None:
            if parameter.default is parameter.empty:
                raise RegistrationError(f"{label}: unknown argument {name!r}{suggest(name, [*ARGUMENTS, *services])}")
            skipped = True
        elif parameter.kind is parameter.KEYWORD_ONLY or skipped:
            keyword[name] = path
        else:
            positional.append(path)
    return _compile(method, positional, keyword)


def _compile(method: Callable[..., Any], positional: list[str], keyword: dict[str, str]) -> Call:
    if positional == [""] and not keyword:
        return method
    if not positional and not keyword:
        return lambda runner: method()
    getters = [_getter(path) for path in positional]
    if keyword:
        named = [(name, _getter(path)) for name, path in keyword.items()]
        return lambda runner: method(*[get(runner) for get in getters], **{name: get(runner) for name, get in named})
    if len(positional) == 1:
        get_one = getters[0]
        return lambda runner: method(get_one(runner))
    if "" not in positional:
        get_all = attrgetter(*positional)
        return lambda runner: method(*get_all(runner))
    if positional[0] == "" and "" not in positional[1:]:
        rest = positional[1:]
        get_rest = attrgetter(*rest)
        if len(rest) == 1:
            return lambda runner: method(runner, get_rest(runner))
        return lambda runner: method(runner, *get_rest(runner))
    return lambda runner: method(*[get(runner) for get in getters])


def _getter(path: str) -> Call:
    return attrgetter(path) if path else lambda runner: runner
