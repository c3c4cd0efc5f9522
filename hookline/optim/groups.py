"""Parameter groups: of one optimizer or of several, and which of their learning rates stands for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import torch

Optimizers = torch.optim.Optimizer | Mapping[str, torch.optim.Optimizer]
Group = dict[str, Any]


def by_name(optimizers: Optimizers | None) -> dict[str, torch.optim.Optimizer]:
    """The optimizers by name; a single one has the name ""."""
    if optimizers is None:
        return {}
    return dict(optimizers) if isinstance(optimizers, Mapping) else {"": optimizers}


def param_groups(optimizers: Optimizers | None) -> list[Group]:
    """The parameter groups of all optimizers."""
    return [group for optimizer in by_name(optimizers).values() for group in optimizer.param_groups]


def learning_rates(optimizers: Optimizers | None, main: int = 0) -> dict[str, float]:
    """The learning rate of the main group as `lr` (`lr_<name>` with several optimizers), those of others as `lr/<name or number>`."""
    rates: dict[str, float] = {}
    for name, optimizer in by_name(optimizers).items():
        key, groups = f"lr_{name}" if name else "lr", optimizer.param_groups
        rates[key] = groups[main]["lr"]
        if len(groups) > 1:
            rates |= {f"{key}/{group.get('name', number)}": group["lr"] for number, group in enumerate(groups) if number != main}
    return rates


def representative_group(optimizer: torch.optim.Optimizer) -> int:
    """The index of the group with most parameters; if all have a single one, of the first with the most common rate."""
    groups = optimizer.param_groups
    sizes = [len(group["params"]) for group in groups]
    if max(sizes) > 1:
        return sizes.index(max(sizes))
    rates = [float(group["lr"]) for group in groups]
    return rates.index(Counter(rates).most_common(1)[0][0])


def momentum_of(group: Group) -> float | None:
    """The momentum of a group, which is the first beta of Adam and its kin; None if it has neither."""
    if "betas" in group:
        return float(group["betas"][0])
    return float(group["momentum"]) if "momentum" in group else None


def set_momentum(group: Group, value: float) -> None:
    if "betas" in group:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value
