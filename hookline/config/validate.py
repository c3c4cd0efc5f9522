"""Find all problems of a config at once, before anything is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookline.config.load import load_config
from hookline.config.locations import Config
from hookline.config.schema import REQUIRED, TOP_LEVEL
from hookline.config.sections import SECTIONS, check_keys
from hookline.errors import ConfigError, Problem, Suggestion
from hookline.imports import import_module

MAX_SHOWN_PROBLEMS = 20  # An error message should fit on one screen.


def check(config: Mapping[str, Any]) -> None:
    """Raise one ConfigError with all problems of a config, if it has any."""
    raise_problems(validate(config))


def raise_problems(problems: Iterable[Problem]) -> None:
    """Raise one ConfigError with located problems in the order of their lines, if there are any."""
    found = _in_order(problems)
    hidden = len(found) - MAX_SHOWN_PROBLEMS
    if hidden > 0:
        found = [*found[:MAX_SHOWN_PROBLEMS], Problem(f"… and {hidden} more problems")]
    if found:
        raise ConfigError(found)


def import_custom(config: Config) -> None:
    """Import the modules of `custom_imports`, which register classes.

    Raises:
        ConfigError: If one cannot be imported.
    """
    problems = _check_imports(config.get("custom_imports"))
    raise_problems(config.locate(problem) for problem in problems)


def validate(config: Mapping[str, Any]) -> list[Problem]:
    """Return all problems of a config, each with path, file and line, in the order of the lines."""
    config = config if isinstance(config, Config) else load_config(config)
    given = {key: value for key, value in config.items() if value is not None}
    problems = _check_imports(given.get("custom_imports"))  # They may register classes.
    problems += check_keys(config, TOP_LEVEL, ())
    wrong = {problem.path[0] for problem in problems}
    for key, value in given.items():
        if key in SECTIONS and key not in wrong:
            problems += SECTIONS[key](value)
    for key, example in REQUIRED.items():
        if key not in given:
            suggestion = Suggestion(advice=f"add, for example, {example}")
            problems.append(Problem(f"missing {key!r}", parameter=key, suggestion=suggestion))
    return _in_order(config.locate(problem) for problem in problems)


def _in_order(problems: Iterable[Problem]) -> list[Problem]:
    return sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0))


def _check_imports(modules: Any) -> list[Problem]:
    problems: list[Problem] = []
    for index, name in enumerate(modules if isinstance(modules, list) else []):
        try:
            import_module(str(name))
        except ConfigError as error:
            problems += [problem.below("custom_imports", index) for problem in error.problems]
    return problems
