"""Parameter groups from rules: by pattern, without weight decay, with a rate for each layer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn

from hookline.errors import ConfigError, KeyPath, Suggestion, suggest
from hookline.module_names import named_parameters
from hookline.optim.groups import Group, Optimizers, by_name
from hookline.optim.patterns import (
    NamedParameter,
    Patterns,
    assign,
    list_parameters,
    select,
)

FACTORS = {"lr_factor": "lr", "weight_decay_factor": "weight_decay"}
REST = "rest"  # the name of the group with all parameters that no rule chooses


class GroupRow(NamedTuple):
    """One parameter group of a run, as a table shows it."""

    optimizer: str
    group: str
    tensors: int
    parameters: int
    lr: float
    weight_decay: float | None


def make_groups(
    model: nn.Module,
    defaults: Mapping[str, Any],
    groups: Mapping[str, Mapping[str, Any]] | None = None,
    no_decay: Patterns | None = None,
    layer_decay: float | Mapping[str, Any] | None = None,
    share: Iterable[NamedParameter] | None = None,
) -> list[Group]:
    """Return the parameter groups of an optimizer; each parameter is in exactly one.

    Args:
        model: The model.
        defaults: The values of the optimizer, of which factors need `lr` and `weight_decay`.
        groups: Rules by name: `params`, the patterns; `lr_factor` and `weight_decay_factor`; other
            keys are values of the optimizer, such as `betas`. Other parameters are in `rest`.
        no_decay: Patterns of parameters without weight decay, such as `[bias, norm]`.
        layer_decay: The factor between the learning rates of two layers, or `{rate: 0.8, layers:
            "encoder.layers"}` with the name of the list of layers. The last layer has rate `lr`.
        share: The parameters of this optimizer; all trainable ones if None.

    Raises:
        ConfigError: If a pattern fits nothing, two rules choose the same parameter, or a factor
            has no value to multiply.
    """
    parameters = list_parameters(model) if share is None else list(share)
    rules = groups or {}
    _check_rules(rules, defaults, ("groups",))
    choices = {name: rule["params"] for name, rule in rules.items()}
    owners = assign(choices, parameters, "groups", ("groups",))
    undecayed: set[int] = set()
    if no_decay is not None:
        undecayed = {id(each.tensor) for each in select(no_decay, parameters, ("no_decay",))}
    if layer_decay is not None and "lr" not in defaults:
        message = "'layer_decay': the optimizer has no 'lr'"
        raise ConfigError(message, path=("layer_decay",), parameter="layer_decay")
    layers = _find_layers(layer_decay, model)
    made: dict[str, Group] = {}
    for each in parameters:
        rule = owners.get(id(each.tensor), REST)
        depth = layers.depth_of(each)
        is_decayed = id(each.tensor) not in undecayed
        labels = [rule] if rules else []
        if depth is not None:
            labels.append(f"layer_{depth}")
        if no_decay is not None and not is_decayed:
            labels.append("no_decay")
        name = "/".join(labels) or ("decay" if no_decay is not None else REST)
        if name not in made:
            values = _values(rules.get(rule, {}), defaults, layers.factor(depth), is_decayed)
            made[name] = {"params": [], "name": name, **values}
        made[name]["params"].append(each.tensor)
    return list(made.values())


def describe_groups(optimizers: Optimizers | None) -> list[GroupRow]:
    """Return a row for each parameter group of one or several optimizers."""
    rows = []
    for key, optimizer in by_name(optimizers).items():
        for index, group in enumerate(optimizer.param_groups):
            count = sum(parameter.numel() for parameter in group["params"])
            decay = group.get("weight_decay")
            rows.append(
                GroupRow(
                    key or type(optimizer).__name__,
                    str(group.get("name", index)),
                    len(group["params"]),
                    count,
                    float(group["lr"]),
                    None if decay is None else float(decay),
                )
            )
    return rows


def check_disjoint(optimizers: Optimizers, model: nn.Module) -> None:
    """Raise ConfigError with the names of parameters that two optimizers would step."""
    owners: dict[int, str] = {}
    names = {id(each): name for name, each in named_parameters(model)}
    shared: dict[tuple[str, str], list[str]] = {}
    for key, optimizer in by_name(optimizers).items():
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                owner = owners.setdefault(id(parameter), key)
                if owner != key:
                    name = names.get(id(parameter), "a parameter without a name")
                    shared.setdefault((owner, key), []).append(name)
    for (first, second), listed in shared.items():
        raise ConfigError(
            f"the optimizers {first!r} and {second!r} both have {', '.join(listed[:5])}",
            component="optimizer",
            parameter="optimizer",
            suggestion=Suggestion(advice="give each parameter to one of them"),
        )


class _Layers:
    """The depth of each parameter, and the factor of the learning rate at a depth."""

    def __init__(self, depths: Mapping[int, int], rate: float) -> None:
        self._depths = depths
        self._rate = rate
        self._last = max(depths.values(), default=0)

    def depth_of(self, parameter: NamedParameter) -> int | None:
        return self._depths.get(id(parameter.tensor))

    def factor(self, depth: int | None) -> float:
        return 1.0 if depth is None else self._rate ** (self._last - depth)


def _values(
    rule: Mapping[str, Any], defaults: Mapping[str, Any], layer_factor: float, is_decayed: bool
) -> dict[str, Any]:
    values = {key: value for key, value in rule.items() if key not in ("params", *FACTORS)}
    factors = {key: rule.get(key, 1.0) for key in FACTORS}
    factors["lr_factor"] *= layer_factor
    for key, factor in factors.items():
        if factor != 1.0:
            name = FACTORS[key]
            base = values[name] if name in values else defaults[name]
            values[name] = float(base) * factor
    if not is_decayed:
        values["weight_decay"] = 0.0
    return values


def _check_rules(
    rules: Mapping[str, Mapping[str, Any]], defaults: Mapping[str, Any], path: KeyPath
) -> None:
    """Raise ConfigError if a rule has no patterns, or a factor that is unknown or has no value."""
    for name, rule in rules.items():
        if "params" not in rule:
            message = "missing 'params': patterns of parameter names"
            raise ConfigError(message, path=(*path, name), parameter="params")
        for key, value in rule.items():
            about: dict[str, Any] = {"path": (*path, name, key), "parameter": key}
            nearest = suggest(key, FACTORS).nearest
            if key not in (*FACTORS, *defaults, "params") and nearest is not None:
                raise ConfigError("unknown key", suggestion=Suggestion(nearest=nearest), **about)
            if key not in (*FACTORS, *FACTORS.values()):
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float, torch.Tensor)):
                raise ConfigError(f"{key!r} must be a number", value=value, **about)
            base = FACTORS.get(key, key)
            if base not in defaults and base not in rule:
                raise ConfigError(f"{key!r}: the optimizer has no {base!r}", **about)


def _find_layers(given: float | Mapping[str, Any] | None, model: nn.Module) -> _Layers:
    """Number the layers: parameters before the list of layers are layer 0, later ones the last."""
    if given is None:
        return _Layers({}, 1.0)
    path: KeyPath = ("layer_decay",)
    options = dict(given) if isinstance(given, Mapping) else {"rate": given}
    for key in options:
        if key not in ("rate", "layers"):
            suggestion = suggest(str(key), ("rate", "layers"))
            raise ConfigError("unknown key", path=(*path, key), suggestion=suggestion)
    rate = options.get("rate")
    if not isinstance(rate, (int, float)) or not 0 < rate <= 1:
        raise ConfigError("'rate' must be above 0 and at most 1", path=path, value=rate)
    prefix = _layer_list(model, options.get("layers"), path)
    start = f"{prefix}." if prefix else ""
    numbers: dict[str, int] = {}  # by the element of the list
    depths: dict[int, int] = {}
    position = "before"
    for each in list_parameters(model):
        if each.name.startswith(start):
            position = each.name.removeprefix(start).partition(".")[0]
        elif position != "before":
            position = "after"
        depths[id(each.tensor)] = numbers.setdefault(position, len(numbers))
    return _Layers(depths, float(rate))


def _layer_list(model: nn.Module, name: Any, path: KeyPath) -> str:
    """Return the name of the list of layers: the given one, or the longest list of the model."""
    lists = {
        each: len(module)
        for each, module in model.named_modules()
        if isinstance(module, (nn.ModuleList, nn.Sequential))
    }
    if not lists:
        message = "the model has no ModuleList or Sequential, whose elements are the layers"
        raise ConfigError(message, path=path)
    if name is None:
        longest: str = max(lists, key=lambda each: lists[each])
        return longest
    if name not in lists:
        suggestion = suggest(str(name), lists)
        message = f"the model has no list of layers {name!r}"
        raise ConfigError(message, path=(*path, "layers"), suggestion=suggestion)
    return str(name)
