"""Parameter groups of one or several optimizers, their learning rates and momenta."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from hookline.errors import ConfigError, parameter_error, suggest

Optimizers = torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer]
Group = dict[str, Any]


def by_name(optimizers: Optimizers | None) -> dict[str, torch.optim.Optimizer]:
    """Return the optimizers by name; the name of a single one is empty."""
    if optimizers is None:
        return {}
    if isinstance(optimizers, Mapping):
        return dict(optimizers)
    return {"": optimizers}


def param_groups(optimizers: Optimizers | None) -> list[Group]:
    """Return the parameter groups of all optimizers."""
    groups: list[Group] = []
    for optimizer in by_name(optimizers).values():
        groups += optimizer.param_groups
    return groups


def choose_groups(
    optimizers: Mapping[str, torch.optim.Optimizer], names: Iterable[str] | None, owner: str
) -> list[Group]:
    """Return the groups with these names: of an optimizer, of a group, or `optimizer/group`.

    Args:
        optimizers: The optimizers by name.
        names: The names; None chooses all groups.
        owner: The hook that chooses, for errors.

    Raises:
        ConfigError: If no group has one of the names, or there is no name.
    """
    labeled: list[tuple[set[str], Group]] = []
    for name, optimizer in optimizers.items():
        for index, group in enumerate(optimizer.param_groups):
            label = str(group.get("name", index))
            labels = {name, label, f"{name}/{label}"} if name else {label}
            labeled.append((labels, group))
    if names is None:
        return [group for _, group in labeled]
    wanted = set(names)
    about: dict[str, Any] = {"component": owner, "parameter": "groups"}
    if not wanted:
        raise ConfigError("needs at least one name, or none at all", value=[], **about)
    known = set().union(*(labels for labels, _ in labeled))
    for name in sorted(wanted - known):
        raise ConfigError(
            "there is no optimizer or parameter group of this name",
            value=name,
            suggestion=suggest(name, known),
            **about,
        )
    return [group for labels, group in labeled if labels & wanted]


def describe_group(group: Group, optimizers: Mapping[str, torch.optim.Optimizer]) -> str:
    """Return a group in the words of a message, with its name and that of its optimizer."""
    names = []
    for name, optimizer in optimizers.items():
        if name and any(each is group for each in optimizer.param_groups):
            names.append(name)
    if "name" in group:
        names.append(str(group["name"]))
    return f"the parameter group {'/'.join(names)!r}" if names else "the parameter group"


def learning_rates(optimizers: Optimizers | None, main: int = 0) -> dict[str, float]:
    """Return the learning rates by the names under which they are logged.

    The rate of the group with index `main` is `lr`, or `lr_<name>` with several optimizers. Those
    of other groups are `lr/<name or index>`.
    """
    rates: dict[str, float] = {}
    for name, optimizer in by_name(optimizers).items():
        key = f"lr_{name}" if name else "lr"
        rates[key] = optimizer.param_groups[main]["lr"]
        for index, group in enumerate(optimizer.param_groups):
            if index != main:
                rates[f"{key}/{group.get('name', index)}"] = group["lr"]
    return rates


def representative_group(optimizer: torch.optim.Optimizer) -> int:
    """Return the index of the group with the most parameters.

    If every group has a single one, it is the first group with the most common learning rate.
    """
    groups = optimizer.param_groups
    sizes = [len(group["params"]) for group in groups]
    if max(sizes) > 1:
        return sizes.index(max(sizes))
    rates = [float(group["lr"]) for group in groups]
    return rates.index(Counter(rates).most_common(1)[0][0])


def momentum_of(group: Group) -> float | None:
    """Return the momentum of a group, which is Adam's first beta; None if it has neither."""
    if "betas" in group:
        return float(group["betas"][0])
    if "momentum" in group:
        return float(group["momentum"])
    return None


def set_momentum(group: Group, value: float) -> None:
    """Set the momentum of a group, or the first of its betas."""
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def values_per_group(
    owner: object, parameter: str, name: str, optimizer: torch.optim.Optimizer
) -> list[float]:
    """Return one value of a parameter for each group of an optimizer.

    Args:
        owner: The object that has the parameter: one number, a list with one for each group, or
            a mapping of either by the optimizers' names.
        parameter: The name of its attribute.
        name: The name of the optimizer.
        optimizer: The optimizer.
    """
    count = len(optimizer.param_groups)
    given = getattr(owner, parameter)
    if isinstance(given, Mapping):
        given = given.get(name, [])
    values = list(given) if isinstance(given, (list, tuple)) else [given] * count
    if len(values) != count:
        suffix = f" of optimizer {name!r}" if name else ""
        raise parameter_error(owner, parameter, f"must fit the {count} parameter groups{suffix}")
    return values


def scale_learning_rates(
    optimizers: Optimizers | None, schedulers: Any, factor: float
) -> list[float | None]:
    """Multiply current and initial learning rates by a factor, also those of schedulers.

    Args:
        optimizers: One optimizer, or several by name.
        schedulers: One scheduler, a list, or None.
        factor: The factor.

    Returns:
        The initial learning rate of each parameter group; None if it has none.
    """
    groups = param_groups(optimizers)
    for group in groups:
        for key in ("lr", "initial_lr"):
            if key in group:
                group[key] *= factor
    if not isinstance(schedulers, (list, tuple)):
        schedulers = [schedulers]
    for scheduler in schedulers:
        if hasattr(scheduler, "base_lrs"):
            scheduler.base_lrs = [rate * factor for rate in scheduler.base_lrs]
    return [group.get("initial_lr") for group in groups]
