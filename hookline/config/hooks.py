"""Build the hooks of a config, and report mistakes with their lines in the config."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hookline.config.components import duplicate_name_problem, label, locating_errors
from hookline.config.locations import Config
from hookline.config.schedules import hook_configs
from hookline.config.validate import raise_problems, validate
from hookline.engine import HOOKS, BaseHook, seed_everything
from hookline.engine.sites import OWNED, SITE_NAMES
from hookline.errors import ConfigError, KeyPath, Problem, Suggestion, dotted
from hookline.hook_checks import check_hook, merge_advice
from hookline.hooks import CheckpointHook
from hookline.hooks.builder import get_default_hooks


def checked_hooks(config: Config) -> dict[KeyPath, BaseHook]:
    """Check a whole config and return its hooks by their paths.

    Raises:
        ConfigError: With all problems of the config, those that only a hook's constructor finds
            included.
    """
    problems = validate(config)
    if not problems:
        seed_everything(config.get("seed") or 0)  # A constructor may draw random numbers.
    hooks: dict[KeyPath, BaseHook] = {}
    for path, given in hook_configs(config, [problem.path for problem in problems]):
        try:
            hooks[path] = _build_hook(config, path, given)
        except ConfigError as error:
            problems += error.problems
    problems += _conflicts(config, hooks)
    if not problems:  # With problems it is unknown which default hooks the run will have.
        problems += _duplicate_names(config, hooks)
    raise_problems(problems)
    return hooks


def hook_label(hook: BaseHook) -> str:
    """Label a hook by its class, and by its name if the user gave it one."""
    return label(type(hook).__name__, {"name": hook.name})


def _build_hook(config: Config, path: KeyPath, given: Mapping[str, Any]) -> BaseHook:
    with locating_errors(config, path, label(HOOKS.get(given["type"]).__name__, given)):
        hook = HOOKS.build(given)
    with locating_errors(config, path):
        _check_alone(hook)
    return hook


def _check_alone(hook: BaseHook) -> None:
    """Raise if no runner could register a hook, independent of other hooks.

    A hook with site aliases is skipped: it may need services that its own runner provides.
    """
    if hook.site_aliases:
        return
    given_name = hook.name
    hook.name = hook.name or type(hook).__name__
    try:
        check_hook(hook, SITE_NAMES, {})
    finally:
        hook.name = given_name


def _conflicts(config: Config, hooks: Mapping[KeyPath, BaseHook]) -> Iterator[Problem]:
    """Yield a problem for each hook with the same exclusive claim as an earlier hook."""
    first: dict[str, KeyPath] = {}
    for path, hook in hooks.items():
        for claim, advice in _exclusive_claims(config, hook):
            earlier = first.setdefault(claim, path)
            if earlier == path:
                continue
            line = config.location(earlier).line
            if not isinstance(hook, CheckpointHook):
                advice = merge_advice(hook, hooks[earlier]) or advice
            other = f"{dotted(earlier)} {hook_label(hooks[earlier])}"
            if line is not None:
                other = f"{other} (line {line})"
            problem = Problem(
                f"this hook and {other} both {claim}, and only one hook can",
                path,
                component=hook_label(hook),
                suggestion=Suggestion(advice=advice),
            )
            yield config.locate(problem)


def _exclusive_claims(config: Config, hook: BaseHook) -> Iterator[tuple[str, str]]:
    """Yield each claim that only one hook can have, with advice for a conflict."""
    for site in OWNED:
        if hook.site_method(site) is not None:
            yield f"own {site!r}", "remove one of them"
    if isinstance(hook, CheckpointHook):
        directory = Path(hook.out_dir or str(config["work_dir"]))
        yield f"save into {directory}", "remove one of them, or give them different out_dirs"


def _duplicate_names(config: Config, hooks: Mapping[KeyPath, BaseHook]) -> Iterator[Problem]:
    """Yield a problem for each given name that is also the class name of another hook."""
    defaults = get_default_hooks(replaced_by=hooks.values(), without=config.get("drop_hooks") or [])
    owners = {type(hook).__name__: "a default hook" for hook in defaults}
    for path, hook in hooks.items():
        kind = type(hook).__name__
        if hook.name in owners and hook.name != kind:
            yield config.locate(duplicate_name_problem(hook.name, path, owners[hook.name]))
        owners[hook.name or kind] = dotted(path)
