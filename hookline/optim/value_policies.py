"""Policies for any value, by name, and values of parameter groups by path."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from hookline.errors import ConfigError, Suggestion, suggest
from hookline.optim import policies
from hookline.optim.groups import Group, describe_group
from hookline.registry import Registry

POLICIES: Registry[policies.Policy] = Registry("policy", policies.Policy)
INDEXED = re.compile(r"(\w+)\[(\d+)\]")  # betas[0]


@dataclass
class ToValue(policies.Annealing):
    """The target of any value: `to`, or `to_ratio` of the initial one."""

    to: float | None = None
    to_ratio: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        policies.check_target(self, "to", "to_ratio")

    def target(self, initial: float) -> float:
        return policies.resolve_target(initial, self.to, self.to_ratio)


@dataclass
class CosineToValue(ToValue, policies.Cosine):
    """Half a cosine wave to a value."""


@dataclass
class LinearToValue(ToValue, policies.Linear):
    """A straight line to a value."""


@dataclass
class PolyToValue(ToValue, policies.Poly):
    """Decay to a value with the remaining fraction of the run, raised to `power`."""


@dataclass
class FlatCosineToValue(ToValue, policies.FlatCosine):
    """The initial value for the first part of the run, then half a cosine wave to a value."""


@dataclass
class StableDecayToValue(ToValue, policies.StableDecay):
    """The initial value until the last part of the run, in which it moves to a value."""


@dataclass
class CosineRestartToValue(ToValue, policies.CosineRestart):
    """One cosine wave to a value in each period."""


@dataclass
class OneCycleToValue(ToValue, policies.OneCycle):
    """One cycle from `1 / div_factor` of a value up to it, then down again."""

    def compute(self, initial: float, progress: int, end: int) -> float:
        return super().compute(self.target(initial) / self.div_factor, progress, end)


@dataclass
class StepWithMinimum(policies.Step):
    """Multiplication by `gamma` at regular or given steps, down to `min`."""

    min: float | None = None

    def minimum(self) -> float | None:
        return self.min


# By the names of the learning rate policies, with shorter names for some.
for _name, _policy in {
    "fixed": policies.Fixed,
    "step": StepWithMinimum,
    "exp": policies.Exp,
    "poly": PolyToValue,
    "inv": policies.Inv,
    "cosine_annealing": CosineToValue,
    "cosine": CosineToValue,
    "linear_annealing": LinearToValue,
    "linear": LinearToValue,
    "flat_cosine_annealing": FlatCosineToValue,
    "flat_cosine": FlatCosineToValue,
    "wsd": StableDecayToValue,
    "cosine_restart": CosineRestartToValue,
    "cyclic": policies.Cyclic,
    "one_cycle": OneCycleToValue,
}.items():
    POLICIES.register(_name)(_policy)


def read_value(group: Group, path: str) -> float | None:
    """Return a number of a group, such as `weight_decay` or `betas[0]`; None if it has none."""
    indexed = INDEXED.fullmatch(path)
    if indexed is None:
        value = group.get(path)
    else:
        values = group.get(indexed[1])
        if not isinstance(values, (list, tuple)) or int(indexed[2]) >= len(values):
            return None
        value = values[int(indexed[2])]
    if isinstance(value, bool) or not isinstance(value, (int, float, torch.Tensor)):
        return None
    return float(value)


def write_value(group: Group, path: str, value: float) -> None:
    """Set a number of a parameter group, such as `weight_decay` or `betas[0]`."""
    indexed = INDEXED.fullmatch(path)
    if indexed is None:
        group[path] = value
        return
    values = list(group[indexed[1]])
    values[int(indexed[2])] = value
    group[indexed[1]] = tuple(values)


def numeric_values(group: Group) -> list[str]:
    """Return the paths of all numbers of a parameter group, apart from initial values."""
    found = []
    for key, value in group.items():
        if key == "params" or key.startswith("initial_"):
            continue
        if isinstance(value, (list, tuple)):
            found += [f"{key}[{index}]" for index in range(len(value))]
        elif read_value(group, key) is not None:
            found.append(key)
    return found


def check_value(
    groups: Iterable[Group],
    path: str,
    owner: str,
    optimizers: Mapping[str, torch.optim.Optimizer],
) -> None:
    """Raise ConfigError unless all groups, of optimizers by name, have a value."""
    for group in groups:
        if read_value(group, path) is None:
            known = numeric_values(group)
            suggestion = suggest(path, known)
            if suggestion.nearest is None:
                suggestion = Suggestion(known=tuple(known))
            raise ConfigError(
                f"{describe_group(group, optimizers)} has no such value",
                component=owner,
                parameter="value",
                value=path,
                suggestion=suggestion,
            )


def find_attribute(run: Any, path: str, owner: str) -> tuple[Any, str]:
    """Return the object and the name of an attribute that holds a number, such as `loss_fn.alpha`.

    Raises:
        ConfigError: If there is no such attribute, or it is not a number.
    """
    *parts, name = path.split(".")
    target = run
    for part in parts:
        target = getattr(target, part, None)
    value = getattr(target, name, None)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        attributes = getattr(target, "__dict__", {})
        known = [key for key, each in attributes.items() if isinstance(each, (int, float))]
        raise ConfigError(
            "must be a number of the loss function or the model",
            component=owner,
            parameter="value",
            value=path,
            suggestion=suggest(name, [key for key in known if not key.startswith("_")]),
        )
    return target, name
