"""The config sections that add hooks: `lr_config`, `momentum_config`, `scheduler`, `checkpoint`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hookline.config.components import as_component, check_component, misspelled_keys
from hookline.engine import HOOKS
from hookline.errors import ConfigError, KeyPath, Problem, Suggestion, suggest
from hookline.optim import SCHEDULERS
from hookline.optim.schedulers import COMMON, scheduler_arguments
from hookline.signature import fits, type_problem

# The suffix of the hook classes that the policies of a section stand for.
POLICIES = {"lr_config": "LrUpdaterHook", "momentum_config": "MomentumUpdaterHook"}


def hook_configs(
    config: Mapping[str, Any], wrong: Collection[KeyPath] = ()
) -> list[tuple[KeyPath, dict[str, Any]]]:
    """Return the path and the config `{type: …}` of every hook, including those of sections.

    Args:
        config: The whole config.
        wrong: Paths with problems; hooks at, above or below one of them are left out.
    """

    def is_sound(path: KeyPath) -> bool:
        return not any(_overlap(path, bad) for bad in wrong)

    hooks: list[tuple[KeyPath, dict[str, Any]]] = []
    if ("hooks",) not in wrong:
        for index, hook in enumerate(config.get("hooks") or []):
            if is_sound(("hooks", index)):
                hooks.append((("hooks", index), as_component(hook)))
    if config.get("checkpoint") is not None and is_sound(("checkpoint",)):
        hooks.append((("checkpoint",), checkpoint_hook(config["checkpoint"])))
    for section in POLICIES:
        if config.get(section) is not None and is_sound((section,)):
            hooks += policy_hooks(section, config[section])
    if config.get("scheduler") is None or not is_sound(("scheduler",)):
        return hooks
    if not any(_steps_schedulers(hook) for _, hook in hooks):
        hooks.append((("scheduler",), {"type": "ParamSchedulerHook"}))
    return hooks


def checkpoint_hook(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of the hook of the section `checkpoint`, which has its parameters."""
    return {"type": "CheckpointHook", **value}


def check_checkpoint(value: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of `checkpoint`."""
    return check_component(HOOKS, checkpoint_hook(value), ("checkpoint",))


def _overlap(path: KeyPath, bad: KeyPath) -> bool:
    """Return whether one of two paths leads through the other; the root overlaps nothing."""
    length = min(len(path), len(bad))
    return length > 0 and path[:length] == bad[:length]


def _steps_schedulers(hook: Mapping[str, Any]) -> bool:
    return bool(getattr(HOOKS.get(hook["type"]), "steps_schedulers", False))


def policy_hooks(section: str, value: Mapping[str, Any]) -> list[tuple[KeyPath, dict[str, Any]]]:
    """Return the path and the config of the hook of a section, or of each parameter group in it."""
    if not _is_per_group(value):
        return [((section,), policy_hook(section, value))]
    return [
        ((section, name), {**policy_hook(section, part), "groups": [str(name)]})
        for name, part in value.items()
    ]


def _is_per_group(value: Mapping[str, Any]) -> bool:
    """Return whether a section has a policy for each group: `{head: {policy: step, …}, …}`."""
    if not value or "policy" in value or "type" in value:
        return False
    return all(isinstance(part, Mapping) for part in value.values())


def known_policies(section: str) -> dict[str, str]:
    """Return the policies of a section, and the names of their hook classes."""
    suffix = POLICIES[section]
    return {name.removesuffix(suffix): name for name in HOOKS.names() if name.endswith(suffix)}


def policy_hook(section: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the config of a policy's hook: `{policy: step, …}` is `{type: StepLrUpdaterHook, …}`.

    Raise ConfigError with a suggestion if the policy is missing or unknown.
    """
    if value.get("type") is not None:
        return dict(value)
    known = known_policies(section)
    policy = value.get("policy")
    if not isinstance(policy, str):
        raise ConfigError(_missing_policy(value, known))
    folded = policy.replace("_", "").lower()
    for name, cls in known.items():
        if name.lower() == folded:
            arguments = {key: item for key, item in value.items() if key != "policy"}
            return {"type": cls, **arguments}
    raise ConfigError(
        f"unknown policy {policy!r}",
        path=("policy",),
        parameter="policy",
        suggestion=suggest(policy, known),
    )


def _missing_policy(value: Mapping[str, Any], known: Collection[str]) -> list[Problem]:
    """Return the problems of a section whose policy is missing or not a text."""
    misspelled = misspelled_keys(value, ("policy", "type"), ())
    if misspelled:
        return misspelled
    suggestion = Suggestion(known=tuple(sorted(known)))
    if value.get("policy") is None:
        return [Problem("missing 'policy'", parameter="policy", suggestion=suggestion)]
    about: dict[str, Any] = {"parameter": "policy", "suggestion": suggestion}
    return [Problem("'policy' must be text", ("policy",), value=value["policy"], **about)]


def check_policy(section: str, value: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of `lr_config` or `momentum_config`."""
    if not _is_per_group(value):
        return _check_policy(section, value, (section,))
    problems: list[Problem] = []
    for name, part in value.items():
        path: KeyPath = (section, name)
        if "groups" in part:
            message = "a policy of one group has no 'groups'"
            problems.append(Problem(message, (*path, "groups"), parameter="groups"))
        problems += _check_policy(section, part, path)
    return problems


def _check_policy(section: str, value: Mapping[str, Any], path: KeyPath) -> list[Problem]:
    try:
        return check_component(HOOKS, policy_hook(section, value), path)
    except ConfigError as error:
        return [problem.below(*path) for problem in error.problems]


def check_scheduler(value: Any, path: KeyPath = ("scheduler",)) -> list[Problem]:
    """Return the problems of one scheduler, or of a list of them."""
    problems: list[Problem] = []
    if isinstance(value, list):
        for index, part in enumerate(value):
            problems += check_scheduler(part, (*path, index))
        return problems
    if not isinstance(value, Mapping):
        return check_component(SCHEDULERS, value, path, {"optimizer"})
    problems += check_component(SCHEDULERS, scheduler_arguments(value), path, {"optimizer"})
    for key, kind in COMMON.items():
        if key in value and not fits(value[key], kind):
            problems.append(type_problem("must be", value[key], kind, (*path, key), parameter=key))
    return problems
