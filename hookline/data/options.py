"""Options of a loader, and the check of them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypedDict, get_type_hints

from torch.utils.data import Subset

from hookline.data.sampler import ShuffleMethod
from hookline.errors import ConfigError, Problem, Suggestion, suggest
from hookline.imports import CALLED_LIBRARIES, check_origin, import_by_path
from hookline.signature import fits, type_problem


class LoaderOptions(TypedDict, total=False):
    """Options that are passed to torch's DataLoader."""

    collate_fn: Callable[[list[Any]], Any] | str | None
    pin_memory: bool
    timeout: float
    worker_init_fn: Callable[[int], None] | None
    multiprocessing_context: Any
    prefetch_factor: int | None
    persistent_workers: bool


OWN: dict[str, Any] = {
    "batch_size": int,
    "shuffle": bool,
    "num_workers": int,
    "seed": int | None,
    "drop_last": bool,
    "shuffle_method": ShuffleMethod,
    "sample_weights": Any,  # checked with the dataset
}
PASSED_ON: dict[str, Any] = get_type_hints(LoaderOptions)
MINIMUM = {"batch_size": 1, "num_workers": 0, "timeout": 0, "prefetch_factor": 1}
FOR_WORKERS = ("persistent_workers", "prefetch_factor", "multiprocessing_context", "timeout")

# Options that would make an exact resume impossible, and their replacements.
ORDER_IS_COMPUTED = "the order follows from seed and epoch, so that a run can resume anywhere"
REFUSED = {
    "sampler": f"{ORDER_IS_COMPUTED}; use shuffle or sample_weights",
    "batch_sampler": f"{ORDER_IS_COMPUTED}; use shuffle and batch_size",
    "generator": f"{ORDER_IS_COMPUTED}; use seed",
    "in_order": "batches are always in order, so that a run can resume anywhere",
}


def check_loader(options: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of a loader's options, without building anything."""
    problems = []
    for name, value in options.items():
        problem = _check_option(name, value)
        if problem is not None:
            problems.append(problem)
    if options.get("collate_fn") is not None:
        problems += _check_function("collate_fn", options["collate_fn"])
    if isinstance(options.get("sample_weights"), str):
        problems += _check_weights(options["sample_weights"])
    if not options.get("num_workers", 0):
        problems += [_needs_workers(name) for name in FOR_WORKERS if options.get(name)]
    if options.get("shuffle") is False and options.get("shuffle_method", "auto") != "auto":
        problems.append(_needs_shuffle("shuffle_method"))
    return problems


def find_function(given: Callable[..., Any] | str) -> Callable[..., Any]:
    """Return a function that is given as an object or as a dotted path.

    Raises:
        ConfigError: If there is no such function; with a suggestion.
    """
    found: object = given
    if isinstance(given, str):
        if "." not in given:
            message = "must be the dotted path of a function, such as my_project.data.collate"
            raise ConfigError(message, value=given)
        found = import_by_path(given, "function", inspect.isroutine)
        check_origin(found, given, CALLED_LIBRARIES)
    if not callable(found):
        message = f"must be a function or the dotted path of one, not a {type(found).__name__}"
        raise ConfigError(message, value=given)
    return found


def own_collate(dataset: Any) -> Callable[..., Any] | None:
    """Return the `collate_fn` of a dataset, or of the one inside a subset; None if it has none."""
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    found = getattr(dataset, "collate_fn", None)
    return found if callable(found) else None


def _check_option(name: str, value: Any) -> Problem | None:
    known = {**OWN, **PASSED_ON}
    about: dict[str, Any] = {"component": "loader", "parameter": name}
    if name in REFUSED:
        advice = Suggestion(advice=REFUSED[name])
        return Problem(f"{name!r} cannot be set", (name,), suggestion=advice, **about)
    if name not in known:
        suggestion = suggest(name, known)
        return Problem(f"unknown parameter {name!r}", (name,), suggestion=suggestion, **about)
    if not fits(value, known[name]):
        return type_problem(f"{name!r} must be", value, known[name], (name,), **about)
    if isinstance(value, float) and not math.isfinite(value):
        return Problem(f"{name!r} must be a finite number", (name,), value=value, **about)
    if name in MINIMUM and value is not None and value < MINIMUM[name]:
        message = f"{name!r} must be at least {MINIMUM[name]}"
        return Problem(message, (name,), value=value, **about)
    return None


def _needs_workers(name: str) -> Problem:
    advice = Suggestion(advice="set num_workers to 1 or more")
    message = f"{name!r} is for worker processes"
    return Problem(message, (name,), component="loader", parameter=name, suggestion=advice)


def _needs_shuffle(name: str) -> Problem:
    advice = Suggestion(advice="set shuffle to true")
    message = f"{name!r} is for a random order"
    return Problem(message, (name,), component="loader", parameter=name, suggestion=advice)


def _check_weights(given: str) -> list[Problem]:
    """Return the problems of `sample_weights` as text."""
    if given == "balanced":
        return []
    if "." in given:
        return _check_function("sample_weights", given)
    message = "'sample_weights' must be 'balanced' or the dotted path of a function"
    about: dict[str, Any] = {"component": "loader", "parameter": "sample_weights", "value": given}
    suggestion = Suggestion(suggest(given, ["balanced"]).nearest)
    return [Problem(message, ("sample_weights",), suggestion=suggestion, **about)]


def _check_function(option: str, given: Any) -> list[Problem]:
    try:
        find_function(given)
    except ConfigError as error:
        problems = []
        for problem in error.problems:
            about: dict[str, Any] = {"component": "loader", "parameter": option}
            message = f"{option!r}: {problem.message}"
            problems.append(replace(problem, message=message, path=(option,), **about))
        return problems
    return []
