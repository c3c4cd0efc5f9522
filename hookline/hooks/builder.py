"""Hooks from configs, and the hooks that every run has unless it says otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookline.engine import HOOKS, BaseHook, Priority, get_priority
from hookline.errors import ConfigError, Problem, suggest

HIGHEST, VERY_HIGH, HIGH, ABOVE_NORMAL, NORMAL, BELOW_NORMAL, LOW, VERY_LOW, LOWEST = Priority

DEFAULT_HOOKS = ("OptimizerHook", "IterTimerHook", "LoggerHook", "EvalHook", "CheckpointHook", "ReportHook")
DROPPABLE = (*DEFAULT_HOOKS, "UnevenBatchHook")  # the last is there in runs of several processes only


def build_hook(config: Mapping[str, Any] | BaseHook | str) -> BaseHook:
    """A hook from `{type: Name, …}`; ConfigError lists all that is wrong with it."""
    return HOOKS.build(config)


def build_hooks(configs: Iterable[Mapping[str, Any] | BaseHook | str]) -> list[BaseHook]:
    """Hooks sorted by priority; ConfigError lists what is wrong with any of them."""
    configs = list(configs)
    problems: list[Problem] = []
    for index, config in enumerate(configs):
        if isinstance(config, Mapping):
            problems += [problem.below(index) for problem in HOOKS.check(config)]
    if problems:
        raise ConfigError(problems)
    return sorted((build_hook(config) for config in configs), key=lambda hook: get_priority(hook.priority))


def given_hooks(hooks: Iterable[Any]) -> list[BaseHook]:
    """The hooks that a runner was given, built where they are configs; ConfigError tells which of them cannot be hooks, and why."""
    if isinstance(hooks, (str, Mapping, BaseHook)):
        raise ConfigError(Problem(f"must be a list of hooks, got {hooks!r}", ("hooks",)))
    built: list[BaseHook] = []
    problems: list[Problem] = []
    for index, hook in enumerate(hooks):
        try:
            built.append(HOOKS.build(hook))
        except ConfigError as error:
            problems += [Problem(problem.message, ("hooks", index)) for problem in error.problems]
        except TypeError as error:
            problems.append(Problem(str(error), ("hooks", index)))
    if problems:
        raise ConfigError(problems)
    return built


def get_default_hooks(replaced_by: Iterable[BaseHook] = (), without: Iterable[str] = ()) -> list[BaseHook]:
    """The default hooks, less those that given hooks replace (same class, or the same owned site) and those not wanted."""
    given = list(replaced_by)
    unwanted = set(without)
    unknown = unwanted - set(DROPPABLE)
    if unknown:
        raise ConfigError(
            [Problem(f"{name!r} is not a default hook{suggest(name, DROPPABLE)}", ("drop_hooks",)) for name in sorted(unknown)]
        )
    defaults = [HOOKS.get(name)() for name in DEFAULT_HOOKS if name not in unwanted]
    return [hook for hook in defaults if not any(_replaces(other, hook) for other in given)]


def _replaces(given: BaseHook, default: BaseHook) -> bool:
    both_optimize = given.site_method("optimize") is not None and default.site_method("optimize") is not None
    return isinstance(given, type(default)) or both_optimize
