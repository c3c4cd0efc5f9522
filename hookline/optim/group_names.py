"""Save and restore parameter groups that hooks added and parameters that they froze."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from hookline.errors import HooklineError, Suggestion
from hookline.module_names import named_parameters
from hookline.optim.groups import Optimizers, by_name

GroupNames = dict[str, list[list[str]]]


def name_parameters(modules: Mapping[str, Any]) -> dict[str, nn.Parameter]:
    """Return the parameters of modules by name; other objects are ignored."""
    named = {}
    for prefix, module in modules.items():
        if isinstance(module, nn.Module):
            for name, parameter in named_parameters(module):
                named[f"{prefix}.{name}"] = parameter
    return named


def group_names(optimizers: Optimizers | None, named: Mapping[str, nn.Parameter]) -> GroupNames:
    """Return the names of the parameters of each group, by optimizer; unknown ones are empty."""
    names = {id(parameter): name for name, parameter in named.items()}
    found: GroupNames = {}
    for key, optimizer in by_name(optimizers).items():
        found[key] = []
        for group in optimizer.param_groups:
            found[key].append([names.get(id(each), "") for each in group["params"]])
    return found


def frozen_names(named: Mapping[str, nn.Parameter]) -> list[str]:
    """Return the names of the parameters that require no gradient."""
    return [name for name, parameter in named.items() if not parameter.requires_grad]


def restore_frozen(
    named: Mapping[str, nn.Parameter], frozen: Mapping[str, list[str]], initial: list[str]
) -> None:
    """Freeze and unfreeze parameters as hooks did before the checkpoint.

    A parameter that the user froze or unfroze since the first start of the run stays so.

    Args:
        named: The parameters by name.
        frozen: In the checkpoint: the names when the run was first started, as `initial`, and when
            it was saved, as `saved`.
        initial: The names at this start.
    """
    for name, parameter in named.items():
        if (name in frozen["initial"]) == (name in initial):
            parameter.requires_grad_(name not in frozen["saved"])


def has_fewer_groups(optimizers: Optimizers | None, states: Any) -> bool:
    """Return whether the optimizers have fewer groups than a saved state."""
    for key, optimizer in by_name(optimizers).items():
        state = states.get(key, {}) if key else states
        if len(optimizer.param_groups) < len(state.get("param_groups", ())):
            return True
    return False


def has_added_groups(saved: GroupNames, initial: Any) -> bool:
    """Return whether a checkpoint has more groups than the optimizers as the user made them.

    Args:
        saved: The names of the parameters in the checkpoint, by optimizer and group.
        initial: The hyperparameters of each group, or of several optimizers by name.
    """
    groups = initial if isinstance(initial, Mapping) else {"": initial or []}
    return any(len(names) > len(groups.get(key, names)) for key, names in saved.items())


def add_missing_groups(
    optimizers: Optimizers | None, saved: GroupNames, named: Mapping[str, nn.Parameter]
) -> None:
    """Add the groups that a hook had added before the checkpoint, without their hyperparameters.

    Raises:
        HooklineError: If parameters of such a group cannot be found by name.
    """
    for key, optimizer in by_name(optimizers).items():
        names = saved.get(key, [])
        for index in range(len(optimizer.param_groups), len(names)):
            missing = [name for name in names[index] if name not in named]
            if missing:
                raise _unknown_parameters_error(index, missing)
            optimizer.add_param_group({"params": [named[name] for name in names[index]]})


def _unknown_parameters_error(index: int, names: Iterable[str]) -> HooklineError:
    listed = ", ".join(name or "without a name" for name in names)
    return HooklineError(
        f"parameter group {index} of the checkpoint has unknown parameters: {listed}",
        parameter="optimizer",
        suggestion=Suggestion(advice="add the group in before_run or before_train of a hook"),
    )
