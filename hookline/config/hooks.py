"""The hooks of a config as objects; what they refuse has its place in the config, also if they find it only when training begins."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path as FilePath
from typing import Any

from hookline.config.components import building, called
from hookline.config.places import Config
from hookline.config.schedules import hook_configs
from hookline.config.validate import refuse, validate
from hookline.engine import HOOKS, BaseHook, seed_everything
from hookline.engine.registration import refuse_unworkable
from hookline.engine.sites import OWNED
from hookline.errors import ConfigError, Path, Problem, dotted
from hookline.hooks import CheckpointHook
from hookline.hooks.builder import get_default_hooks

BEGINNING = ("before_run", "before_train")  # where hooks look at the rest of the run, before anything is trained


def checked_hooks(config: Config) -> dict[Path, BaseHook]:
    """The hooks of a config by their places; ConfigError has all that is wrong with the config, what no hook accepts included."""
    problems = validate(config)
    if not problems:
        seed_everything(config.get("seed") or 0)  # a constructor may draw random numbers
    hooks: dict[Path, BaseHook] = {}
    for path, given in hook_configs(config, [problem.path for problem in problems]):
        try:
            hooks[path] = _built(config, path, given)
        except ConfigError as error:
            problems += error.problems
    problems += _rivals(config, hooks)
    if not problems:  # or else it is not known which default hooks there will be
        problems += _taken_names(config, hooks)
    refuse(problems)
    return hooks


def _built(config: Config, path: Path, given: Mapping[str, Any]) -> BaseHook:
    try:
        with building(config, path, called(HOOKS.get(given["type"]).__name__, given)):
            hook = HOOKS.build(given)
    except ConfigError as error:
        raise ConfigError([_at_parameter(config, path, problem) for problem in error.problems]) from error
    with building(config, path):
        refuse_unworkable(hook)
    for site in BEGINNING:
        method = None if hook.site_aliases else hook.site_method(site)  # one of another framework's kind knows nothing of configs
        if method is not None:
            setattr(hook, site, _placing(config, path, hook, method))
    return hook


def _placing(config: Config, path: Path, hook: BaseHook, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that tells a mistake in the config, which a hook may find only when it sees the run, with the place of it."""

    @functools.wraps(method)
    def begin(*args: Any, **named: Any) -> None:
        try:
            method(*args, **named)
        except ConfigError as error:
            where = f"{dotted(path)} {_called(hook)}"
            own = [replace(each.below(*path), message=each.message.removeprefix(f"{hook.name}: "), where=where) for each in error.problems]
            raise ConfigError([_at_parameter(config, path, problem) for problem in own]) from error

    return begin


def _rivals(config: Config, hooks: Mapping[Path, BaseHook]) -> Iterator[Problem]:
    """The hooks that claim for themselves what an earlier hook of the config does."""
    first: dict[str, Path] = {}
    for path, hook in hooks.items():
        for claim, advice in _claims(config, hook):
            earlier = first.setdefault(claim, path)
            if earlier != path:
                line = config.place(earlier)[1]
                other = f"{dotted(earlier)} {_called(hooks[earlier])}" + (f" (line {line})" if line else "")
                message = f"this and {other} both {claim}, and only one hook can: {advice}"
                yield config.locate(Problem(message, path, where=f"{dotted(path)} {_called(hook)}"))


def _claims(config: Config, hook: BaseHook) -> Iterator[tuple[str, str]]:
    """What a hook must have for itself, and what to do if it has not."""
    for site in OWNED:
        if hook.site_method(site) is not None:
            yield f"own {site!r}", "leave one of them out"
    if isinstance(hook, CheckpointHook):
        yield f"save into {FilePath(hook.out_dir or str(config['work_dir']))}", "leave one of them out, or give it an out_dir of its own"


def _taken_names(config: Config, hooks: Mapping[Path, BaseHook]) -> Iterator[Problem]:
    """The names that hooks were given and that others, which are called after their class, have already."""
    defaults = get_default_hooks(replaced_by=hooks.values(), without=config.get("drop_hooks") or [])
    taken = {type(hook).__name__: "a default hook" for hook in defaults}
    for path, hook in hooks.items():
        kind = type(hook).__name__
        if hook.name in taken and hook.name != kind:
            yield config.locate(Problem(f"the name {hook.name!r} is that of {taken[hook.name]} already", (*path, "name")))
        taken[hook.name or kind] = dotted(path)


def _called(hook: BaseHook) -> str:
    return called(type(hook).__name__, {"name": hook.name})


def _at_parameter(config: Config, path: Path, problem: Problem) -> Problem:
    """The problem of a hook, at the line of the parameter that it speaks of if that is clear."""
    if problem.path == path:
        problem = replace(problem, path=(*path, *_spoken_of(config.at(path), problem.message)))
    return config.locate(problem)


def _spoken_of(given: Any, message: str) -> Path:
    """The one parameter whose text a message quotes, or else the one that it names; none if that could be several."""
    own = {key: value for key, value in given.items() if key not in ("type", "name")} if isinstance(given, Mapping) else {}
    quoted = [key for key, value in own.items() if any(f"{text!r}" in message for text in _texts(value))]
    named = [key for key in own if re.search(rf"\b{re.escape(str(key))}\b", message)]
    return next((tuple(keys) for keys in (quoted, named) if len(keys) == 1), ())


def _texts(value: Any) -> list[str]:
    return [text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str)]
