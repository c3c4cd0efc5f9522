"""`lr_config`, `momentum_config` and `scheduler`: schedules as a config has them, and the hooks that come of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from hookline.config.components import as_component, check_component, misspelt_keys
from hookline.engine import HOOKS
from hookline.errors import ConfigError, Path, Problem, suggest
from hookline.optim import SCHEDULERS
from hookline.optim.schedulers import COMMON, scheduler_arguments
from hookline.signature import describe, fits

POLICIES = {"lr_config": "LrUpdaterHook", "momentum_config": "MomentumUpdaterHook"}  # how the classes' names end


def hook_configs(config: Mapping[str, Any], wrong: Collection[Path] = ()) -> list[tuple[Path, dict[str, Any]]]:
    """Every hook that a config asks for, those of its schedules included, as `{type: …}` with its place; not those with a `wrong` part."""

    def sound(path: Path) -> bool:
        return not any(bad[: len(path)] == path or bad == path[: len(bad)] for bad in wrong if bad)

    listed = [] if ("hooks",) in wrong else config.get("hooks") or []
    hooks: list[tuple[Path, dict[str, Any]]] = [(("hooks", i), as_component(hook)) for i, hook in enumerate(listed) if sound(("hooks", i))]
    for key in POLICIES:
        if config.get(key) is not None and sound((key,)):
            hooks.append(((key,), policy_hook(key, config[key])))
    stepped = any(getattr(HOOKS.get(hook["type"]), "steps_schedulers", False) for _, hook in hooks)
    if config.get("scheduler") is not None and sound(("scheduler",)) and not stepped:
        hooks.append((("scheduler",), {"type": "ParamSchedulerHook"}))
    return hooks


def policy_hook(key: str, value: Mapping[str, Any]) -> dict[str, Any]:
    """`{policy: step, …}` as `{type: StepLrUpdaterHook, …}`; ConfigError with a suggestion if there is no such policy."""
    if value.get("type") is not None:
        return dict(value)
    ending, policy = POLICIES[key], value.get("policy")
    known = {name.removesuffix(ending): name for name in HOOKS.names() if name.endswith(ending)}
    if not isinstance(policy, str):
        what = "missing 'policy'" if policy is None else f"'policy' must be text, got {policy!r}"
        raise ConfigError(misspelt_keys(value, ("policy", "type"), ()) or Problem(f"{what}; known: {', '.join(sorted(known))}"))
    found = next((cls for name, cls in known.items() if name.lower() == policy.replace("_", "").lower()), None)
    if found is None:
        raise ConfigError(Problem(f"unknown policy {policy!r}{suggest(policy, known)}", ("policy",)))
    return {"type": found, **{name: item for name, item in value.items() if name != "policy"}}


def check_policy(key: str, value: Mapping[str, Any]) -> list[Problem]:
    """What is wrong with `lr_config` or `momentum_config`."""
    try:
        return check_component(HOOKS, policy_hook(key, value), (key,))
    except ConfigError as error:
        return [problem.below(key) for problem in error.problems]


def check_scheduler(value: Any, path: Path = ("scheduler",)) -> list[Problem]:
    """What is wrong with one scheduler, or a list of them."""
    if isinstance(value, list):
        return [problem for index, part in enumerate(value) for problem in check_scheduler(part, (*path, index))]
    if not isinstance(value, Mapping):
        return check_component(SCHEDULERS, value, path, {"optimizer"})
    problems = check_component(SCHEDULERS, scheduler_arguments(value), path, {"optimizer"})
    for key, kind in COMMON.items():
        if key in value and not fits(value[key], kind):
            problems.append(Problem(f"must be {describe(kind)}, got {value[key]!r}", (*path, key)))
    return problems
