"""Build one optimizer, or several by name, from a config."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from hookline.errors import ConfigError, KeyPath, Problem, Suggestion, suggest
from hookline.optim.grouping import FACTORS, make_groups
from hookline.optim.groups import Optimizers
from hookline.optim.patterns import NamedParameter, assign, list_names, list_parameters
from hookline.registry import Registry
from hookline.signature import fits, parameters

GROUPING_KEYS = ("groups", "no_decay", "layer_decay")
# Keys of an optimizer's config in addition to the parameters of its class, with their types.
EXTRA: dict[str, Any] = {
    "params": str | list[str],
    "groups": dict,
    "no_decay": str | list[str],
    "layer_decay": float | dict,
}


def is_several(config: Any) -> bool:
    """Return whether a config has several optimizers by name: `{matrices: {type: Muon, …}, …}`."""
    if not isinstance(config, Mapping) or config.get("type") is not None:
        return False
    named = [value for key, value in config.items() if key not in EXTRA]
    return any(isinstance(value, Mapping) and "type" in value for value in named)


def has_groups(config: Any) -> bool:
    """Return whether a config divides the parameters into groups or among optimizers."""
    if is_several(config):
        return True
    return isinstance(config, Mapping) and any(config.get(key) is not None for key in GROUPING_KEYS)


def build_optimizers(
    registry: Registry[torch.optim.Optimizer], config: Mapping[str, Any], model: nn.Module
) -> Optimizers:
    """Build the optimizer of a config, or all of them by name.

    Args:
        registry: The registry of the classes.
        config: `{type: AdamW, lr: …, groups: …, no_decay: …, layer_decay: …}`, or a mapping of
            such with `params`, the patterns of each one's parameters. The one without `params`
            has the rest.
        model: The model. Only its trainable parameters are optimized.

    Raises:
        ConfigError: If a parameter has two optimizers or none, or a pattern fits nothing.
    """
    trained = list_parameters(model)
    if not is_several(config):
        return _build(registry, config, model, trained)
    shares = divide(config, trained)
    optimizers = {}
    for name, share in shares.items():
        try:
            optimizers[name] = _build(registry, config[name], model, share)
        except ConfigError as error:
            raise ConfigError(
                [_locate(name, share, problem) for problem in error.problems]
            ) from error
    return optimizers


def divide(
    config: Mapping[str, Mapping[str, Any]], trained: list[NamedParameter]
) -> dict[str, list[NamedParameter]]:
    """Return the parameters of each optimizer.

    Raises:
        ConfigError: If a parameter has two optimizers or none, or an optimizer has no parameter.
    """
    takes_rest = [name for name, part in config.items() if part.get("params") is None]
    if len(takes_rest) > 1:
        raise ConfigError(
            f"{' and '.join(takes_rest)} have no 'params', but only one can have the rest",
            path=(takes_rest[1],),
            parameter="params",
        )
    choices = {name: part["params"] for name, part in config.items() if name not in takes_rest}
    owners = assign(choices, trained, "optimizers")
    rest = [each for each in trained if id(each.tensor) not in owners]
    if rest and not takes_rest:
        raise ConfigError(
            f"no optimizer has {list_names(rest)}",
            parameter="params",
            suggestion=Suggestion(advice="leave out 'params' of one, which then has the rest"),
        )
    if takes_rest and not rest:
        message = "has no parameters: the other optimizers have them all"
        raise ConfigError(message, path=(takes_rest[0],), parameter="params")
    for each in rest:
        owners[id(each.tensor)] = takes_rest[0]
    shares: dict[str, list[NamedParameter]] = {name: [] for name in config}
    for each in trained:
        shares[owners[id(each.tensor)]].append(each)
    return shares


def _locate(name: str, share: list[NamedParameter], problem: Problem) -> Problem:
    """Return the problem of one of several optimizers, with its parameters."""
    if not problem.suggestion:
        advice = Suggestion(advice=f"its parameters are {list_names(share)}")
        problem = replace(problem, suggestion=advice)
    return problem.below(name)


def class_arguments(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of an optimizer's config that its class takes."""
    return {key: value for key, value in config.items() if key not in EXTRA}


def check_extra(config: Mapping[str, Any], cls: type[torch.optim.Optimizer]) -> list[Problem]:
    """Return the problems of the groups in an optimizer's config, as far as no model is needed."""
    problems = []
    for key, hint in EXTRA.items():
        value = config.get(key)
        if value is not None and not fits(value, hint):
            problems.append(Problem("has the wrong type", (key,), parameter=key, value=value))
    groups = config.get("groups")
    known = ["params", *FACTORS, *(name for name in parameters(cls).known if name != "params")]
    for name, rule in groups.items() if isinstance(groups, Mapping) else ():
        path: KeyPath = ("groups", name)
        if not isinstance(rule, Mapping):
            problems.append(Problem("must be a mapping with 'params'", path, value=rule))
            continue
        for key in rule:
            if key not in known:
                about: dict[str, Any] = {"parameter": str(key), "suggestion": suggest(key, known)}
                problems.append(Problem("unknown key", (*path, key), **about))
        if rule.get("params") is None:
            message = "missing 'params': patterns of parameter names"
            problems.append(Problem(message, path, parameter="params"))
    return problems


def _build(
    registry: Registry[torch.optim.Optimizer],
    config: Mapping[str, Any],
    model: nn.Module,
    share: list[NamedParameter],
) -> torch.optim.Optimizer:
    arguments = class_arguments(config)
    if not has_groups(config):
        return registry.build(arguments, params=[each.tensor for each in share])
    given = {key: config[key] for key in GROUPING_KEYS if config.get(key) is not None}
    defaults = _defaults(registry, arguments)
    if "no_decay" in given and "weight_decay" not in defaults:
        message = f"{arguments['type']} has no 'weight_decay'"
        raise ConfigError(message, path=("no_decay",), parameter="no_decay")
    groups = make_groups(model, defaults, share=share, **given)
    return registry.build(arguments, params=groups)


def _defaults(registry: Registry[Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of an optimizer: those of its config, and the defaults of its class."""
    values = {}
    for name, parameter in parameters(registry.get(arguments["type"])).known.items():
        if parameter.default is not parameter.empty:
            values[name] = parameter.default
    return {**values, **arguments}
