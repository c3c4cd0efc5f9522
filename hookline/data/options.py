"""What a loader can be configured with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from hookline.errors import ConfigError, Problem, suggest
from hookline.registry import FORBIDDEN_MODULES
from hookline.signature import describe, fits

OWN: dict[str, Any] = {"batch_size": int, "shuffle": bool, "num_workers": int, "seed": int, "drop_last": bool}

# What is handed on to torch's DataLoader.
PASSED_ON: dict[str, Any] = {
    "collate_fn": Any,
    "pin_memory": bool,
    "timeout": float,
    "worker_init_fn": Any,
    "multiprocessing_context": Any,
    "prefetch_factor": int | None,
    "persistent_workers": bool,
}

REFUSED = {
    "sampler": "the order follows from seed and epoch, so that a run can resume anywhere; use shuffle",
    "batch_sampler": "the order follows from seed and epoch, so that a run can resume anywhere; use shuffle and batch_size",
    "generator": "the order follows from seed and epoch, so that a run can resume anywhere; use seed",
    "in_order": "batches come in their order, so that a run can resume anywhere",
}


def check_loader(options: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with the options of a loader, without building anything."""
    known = {**OWN, **PASSED_ON}
    problems = []
    for name, value in options.items():
        if name in REFUSED:
            problems.append(Problem(f"loader: {name!r} cannot be set: {REFUSED[name]}", (name,)))
        elif name not in known:
            problems.append(Problem(f"loader: unknown parameter {name!r}{suggest(name, known)}", (name,)))
        elif not fits(value, known[name]):
            problems.append(Problem(f"loader: {name!r} must be {describe(known[name])}, got {value!r}", (name,)))
        elif name in ("batch_size", "num_workers") and value < (least := 1 if name == "batch_size" else 0):
            problems.append(Problem(f"loader: {name!r} must be at least {least}, got {value!r}", (name,)))
    if options.get("collate_fn") is not None:
        problems += _check_function("collate_fn", options["collate_fn"])
    if not options.get("num_workers", 0):
        needless = [name for name in ("persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout") if options.get(name)]
        problems += [Problem(f"loader: {name!r} is for worker processes; set num_workers to 1 or more", (name,)) for name in needless]
    return problems


def find_function(given: Callable[..., Any] | str) -> Callable[..., Any]:
    """A function, or the one that a dotted path names; ConfigError with a suggestion if there is none."""
    found = _named(given) if isinstance(given, str) else given
    if not callable(found):
        kind = f", which is of type {type(found).__name__}" if isinstance(given, str) else ""
        raise ConfigError(f"must be a function or the dotted path of one, got {given!r}{kind}")
    return found


def _named(path: str) -> Any:
    module_name, _, name = path.rpartition(".")
    if not module_name:
        raise ConfigError(f"must be the dotted path of a function, such as my_project.data.collate, got {path!r}")
    if module_name.split(".")[0] in FORBIDDEN_MODULES:
        raise ConfigError(f"{path!r}: module {module_name!r} may not be used from a config")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and not module_name.startswith(error.name):
            raise  # the user's module was found, and what it needs was not: its traceback tells more
        raise ConfigError(f"unknown function {path!r}: there is no module {module_name!r}") from error
    if not hasattr(module, name):
        own = [key for key, value in vars(module).items() if callable(value) and getattr(value, "__module__", "") == module_name]
        raise ConfigError(f"module {module_name!r} has no {name!r}{suggest(name, own)}")
    return getattr(module, name)


def _check_function(option: str, given: Any) -> list[Problem]:
    try:
        find_function(given)
    except ConfigError as error:
        return [Problem(f"loader: {option!r}: {error}", (option,))]
    return []
