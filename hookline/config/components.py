"""Check and build the parts of a config that name a class: `{type: Name, parameters…}`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hookline.config.locations import Config
from hookline.data import DATASETS
from hookline.errors import (
    ConfigError,
    HooklineError,
    KeyPath,
    Problem,
    Suggestion,
    format_exception,
    suggest,
)
from hookline.factories import name_of
from hookline.registry import Registry
from hookline.signature import parameters


def as_component(value: Any) -> dict[str, Any]:
    """Return a component as a mapping: `cnn` is short for `{type: cnn}`."""
    return {"type": value} if isinstance(value, str) else dict(value)


def with_default(value: Any, default: Mapping[str, Any]) -> dict[str, Any]:
    """Return a component, or the default one updated with the given parameters."""
    given = as_component({} if value is None else value)
    if given.get("type") is not None:
        return given
    return {**default, **given}


def check_component(
    registry: Registry[Any],
    value: Any,
    path: KeyPath,
    filled: Iterable[str] = (),
    default: Mapping[str, Any] | None = None,
) -> list[Problem]:
    """Return the problems of one component.

    Args:
        registry: The registry of its class.
        value: The component as written in the config.
        path: Its path in the config.
        filled: Required parameters that are filled in later if the config omits them.
        default: The component that is used if the config names no `type`.
    """
    if not isinstance(value, (str, Mapping)):
        message = f"must be the name of a {registry.name} or a mapping with its 'type'"
        return [Problem(message, path, value=value)]
    misspelled = misspelled_keys(as_component(value), ("type",), path)
    if misspelled:
        return misspelled
    config = as_component(value) if default is None else with_default(value, default)
    if config.get("type") is None:
        message = f"missing 'type': the name of a {registry.name}"
        suggestion = _suggest_type(registry, config)
        return [Problem(message, path, parameter="type", suggestion=suggestion)]
    if not isinstance(config["type"], str):
        return [problem.below(*path) for problem in registry.check(config)]
    try:
        cls = registry.get(config["type"])
    except ConfigError as error:
        return [with_title(problem, path) for problem in error.problems]
    except ImportError as error:  # A package that a callback of another framework needs.
        message = f"cannot import {config['type']!r}: {format_exception(error)}"
        return [Problem(message, (*path, "type"), parameter="type")]
    required = parameters(registry.signature_of(cls)).required()
    provided = frozenset(name for name in filled if name in required and name not in config)
    named = config if "name" in registry.COMMON else {}
    title = label(name_of(cls), named)
    return [with_title(problem, path, title) for problem in registry.check(config, provided)]


def _suggest_type(registry: Registry[Any], config: Mapping[Any, Any]) -> Suggestion:
    """Suggest `type: Name` if the name of a class was written as a key or as the `name`."""
    for name in (*config, config.get("name")):
        if isinstance(name, str) and name in registry:
            return Suggestion(f"type: {name}")
    return Suggestion()


def label(kind: str, given: Mapping[str, Any]) -> str:
    """Label a component by its class, and by its name if the user gave it one."""
    name = given.get("name")
    if isinstance(name, str) and name and not re.fullmatch(rf"{kind}(_\d+)?", name):
        return f"{name} ({kind})"
    return kind


def with_title(problem: Problem, path: KeyPath, component: str = "") -> Problem:
    """Add a component's path and title to its problem: `hooks[2] EarlyStoppingHook: …`."""
    return replace(problem.below(*path), component=component or problem.component)


def duplicate_name_problem(name: str, path: KeyPath, owner: str) -> Problem:
    """Return the problem of a hook at `path` whose name another hook has already."""
    message = f"the name {name!r} is taken by {owner}"
    return Problem(message, (*path, "name"), parameter="name")


def misspelled_keys(
    given: Mapping[Any, Any], wanted: Iterable[str], path: KeyPath
) -> list[Problem]:
    """Return a problem for each key that looks like one of `wanted`, if all of them are absent."""
    if any(given.get(key) is not None for key in wanted):
        return []
    problems = []
    for key in given:
        suggestion = suggest(str(key), wanted)
        if key not in wanted and suggestion.nearest is not None:
            about: dict[str, Any] = {"parameter": str(key), "suggestion": suggestion}
            problems.append(Problem("unknown key", (*path, key), **about))
    return problems


def split_parameter(value: Any) -> set[str]:
    """Return `{"split"}` if a data set takes a split that the config omits, else an empty set."""
    if not isinstance(value, (str, Mapping)):
        return set()
    config = as_component(value)
    kind = config.get("type")
    if not isinstance(kind, str) or config.get("split") is not None:
        return set()
    try:
        known = parameters(DATASETS.get(kind)).known
    except ConfigError:  # check_component reports it.
        return set()
    return {"split"} if "split" in known else set()


@contextmanager
def locating_errors(config: Config, path: KeyPath, title: str = "") -> Iterator[None]:
    """Turn any error of a constructor into a ConfigError with the component's location."""
    try:
        yield
    except HooklineError as error:
        raise located(error, config, path, title) from error
    except (ValueError, TypeError, OSError) as error:
        raise ConfigError(config.locate(Problem(str(error), path, component=title))) from error
    except Exception as error:
        message = format_exception(error)
        raise ConfigError(config.locate(Problem(message, path, component=title))) from error


def located(error: HooklineError, config: Config, path: KeyPath, title: str = "") -> ConfigError:
    """Return a component's error with the component's title and location."""
    problems = [with_title(problem, path, title) for problem in error.problems]
    return ConfigError([config.locate(problem) for problem in problems])
