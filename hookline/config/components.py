"""The parts of a config that a class stands behind: `{type: Name, parameters…}`, checked and built with their place."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hookline.config.modules import explained
from hookline.config.places import Config
from hookline.data import DATASETS
from hookline.errors import ConfigError, Path, Problem, dotted, suggest
from hookline.registry import Registry
from hookline.signature import parameters


def as_component(value: Any) -> dict[str, Any]:
    """`cnn` is short for `{type: cnn}`."""
    return {"type": value} if isinstance(value, str) else dict(value)


def with_default(value: Any, default: Mapping[str, Any]) -> dict[str, Any]:
    """The component, or the default one with the parameters that were given."""
    given = as_component({} if value is None else value)
    return given if given.get("type") is not None else {**default, **given}


def check_component(
    registry: Registry[Any], value: Any, path: Path, filled: Iterable[str] = (), default: Mapping[str, Any] | None = None
) -> list[Problem]:
    """What is wrong with a component; `filled` are the parameters that are filled in if the config leaves them open."""
    if not isinstance(value, (str, Mapping)):
        return [Problem(f"must be the name of a {registry.name} or a mapping with its 'type', got {value!r}", path)]
    if misspelt := misspelt_keys(as_component(value), ("type",), path):
        return misspelt
    config = as_component(value) if default is None else with_default(value, default)
    if config.get("type") is None:
        return [Problem(f"missing 'type': the name of a {registry.name}{_as_type(registry, config)}", path)]
    try:
        cls = registry.get(config["type"]) if isinstance(config.get("type"), str) else None
        known = parameters(registry.signature_of(cls)) if cls else None
        open_ones = frozenset(name for name in filled if known and name in known.required() and name not in config)
        problems = registry.check(config, open_ones)
    except ConfigError as error:
        problems, cls = [explained(problem, config["type"]) for problem in error.problems], None
    except Exception as error:  # the user's own module, named by its dotted path, fails while it is imported
        return [Problem(f"cannot import {config['type']!r}: {failure(error)}", (*path, "type"))]
    named = config if "name" in registry.COMMON else {}
    return [titled(problem, path, called(cls.__name__, named) if cls else "") for problem in problems]


def _as_type(registry: Registry[Any], config: Mapping[Any, Any]) -> str:
    """The end of an error message: how to write the class that stands as a key or name where its `type` should."""
    found = next((name for name in (*config, config.get("name")) if isinstance(name, str) and name in registry), None)
    return f"; did you mean 'type: {found}'?" if found else ""


def called(kind: str, given: Mapping[str, Any]) -> str:
    """What to call something in a message: its class, and the name that it was given if that is another one."""
    name = given.get("name")
    return f"{name} ({kind})" if isinstance(name, str) and name and not re.fullmatch(rf"{kind}(_\d+)?", name) else kind


def titled(problem: Problem, path: Path, name: str = "") -> Problem:
    """`hooks[2] EarlyStoppingHook: unknown parameter …` rather than `hooks[2].patiance: EarlyStoppingHook: unknown parameter …`."""
    placed = problem.below(*path)
    label, colon, rest = problem.message.partition(": ")
    if not colon or " " in label:
        return placed
    return replace(placed, message=rest, where=f"{dotted(path)} {name or label}")


def misspelt_keys(given: Mapping[Any, Any], wanted: Iterable[str], path: Path) -> list[Problem]:
    """The keys that look like one of `wanted`, none of which is there."""
    if any(given.get(key) is not None for key in wanted):
        return []
    hints = {key: suggest(str(key), wanted) for key in given if key not in wanted}
    return [Problem(f"unknown key{hint}", (*path, key)) for key, hint in hints.items() if "did you mean" in hint]


def split_parameter(value: Any) -> set[str]:
    """`{"split"}` if the class of a data set takes it and the config does not say which, else nothing."""
    try:
        config = as_component(value)
        known = parameters(DATASETS.get(config["type"])).known
    except Exception:  # what is wrong with it is told where it is checked
        return set()
    return {"split"} if "split" in known and config.get("split") is None else set()


@contextmanager
def building(config: Config, path: Path, title: str = "") -> Iterator[None]:
    """Errors of a constructor become ConfigErrors with the place in the config that asked for it."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError([config.locate(titled(problem, path, title)) for problem in error.problems]) from error
    except Exception as error:
        message = str(error) if isinstance(error, (ValueError, TypeError, OSError)) else failure(error)
        raise ConfigError(config.locate(Problem(message, path, where=f"{dotted(path)} {title}".strip()))) from error


def failure(error: Exception) -> str:
    """An exception in one line, with the line of code that raised it."""
    text = f"{type(error).__name__}: {error}".splitlines()[0]
    if isinstance(error, SyntaxError):
        return text
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    return f"{text} ({frames[-1].filename}:{frames[-1].lineno})" if len(frames) > 1 else text
