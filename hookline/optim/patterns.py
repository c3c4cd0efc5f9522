"""Patterns that choose parameters of a model by name, by the type of their module and by shape.

| pattern | parameters |
| --- | --- |
| `head` | with `head` as one part of their dotted name; `encoder.layers` as two parts in a row |
| `*.bias` | whose whole name fits, `*` and `?` as in file names |
| `LayerNorm` | of modules of this class |
| `norm` | of every normalization module |
| `*.weight@2d` | that also have two dimensions |
| `*@Linear` | that also belong to a module of this class |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from torch import nn

from hookline.errors import ConfigError, KeyPath, Suggestion, suggest
from hookline.module_names import class_name, without_wrapper

Patterns = str | Sequence[str]
WILDCARDS = frozenset("*?[")
DIMENSIONS = re.compile(r"(\d+)d")


class NamedParameter(NamedTuple):
    """A parameter with its name and the module that holds it."""

    name: str
    tensor: nn.Parameter
    module: nn.Module


def list_parameters(model: nn.Module, trainable_only: bool = True) -> list[NamedParameter]:
    """Return the parameters of a model, each once, in the order of the model."""
    found: dict[int, NamedParameter] = {}
    for prefix, module in model.named_modules():
        for name, parameter in module.named_parameters(recurse=False):
            full_name = without_wrapper(f"{prefix}.{name}" if prefix else name)
            if parameter.requires_grad or not trainable_only:
                found.setdefault(id(parameter), NamedParameter(full_name, parameter, module))
    return list(found.values())


def select(
    patterns: Patterns,
    parameters: Iterable[NamedParameter],
    path: KeyPath = (),
    owner: str = "",
) -> list[NamedParameter]:
    """Return the parameters that fit at least one pattern.

    Args:
        patterns: One pattern or several.
        parameters: The parameters to choose from.
        path: The path of the patterns in a config, for errors.
        owner: The hook that has the patterns, for errors.

    Raises:
        ConfigError: If there is no pattern, or one of them fits nothing.
    """
    known = list(parameters)
    wanted = as_list(patterns)
    name = str(path[-1]) if path else "params"
    about: dict[str, Any] = {"path": path, "component": owner, "parameter": name}
    if not wanted or "" in wanted:
        raise ConfigError(f"{name!r} needs at least one pattern", value=patterns, **about)
    chosen: dict[int, NamedParameter] = {}
    for pattern in wanted:
        fitting = [each for each in known if fits(pattern, each)]
        if not fitting:
            suggestion = _suggest_pattern(pattern, known)
            message = f"{name!r}: no parameter fits the pattern"
            raise ConfigError(message, value=pattern, suggestion=suggestion, **about)
        for each in fitting:
            chosen[id(each.tensor)] = each
    return [each for each in known if id(each.tensor) in chosen]


def assign(
    choices: Mapping[str, Patterns],
    parameters: Sequence[NamedParameter],
    noun: str,
    path: KeyPath = (),
) -> dict[int, str]:
    """Return the name of the patterns that choose each parameter, by the parameter's id.

    Args:
        choices: The patterns by name, of optimizers or groups.
        parameters: The parameters to choose from.
        noun: The plural noun for the names in errors: `optimizers` or `groups`.
        path: The path of the mapping in a config; the patterns are the `params` of a name.

    Raises:
        ConfigError: If a pattern fits nothing, or a parameter is chosen under two names.
    """
    owners: dict[int, str] = {}
    for name, patterns in choices.items():
        own_path: KeyPath = (*path, name, "params")
        chosen = select(patterns, parameters, own_path)
        taken = [each for each in chosen if id(each.tensor) in owners]
        if taken:
            other = owners[id(taken[0].tensor)]
            raise ConfigError(
                f"the {noun} {other!r} and {name!r} both choose {list_names(taken)}",
                path=own_path,
                parameter="params",
                suggestion=Suggestion(advice="change the patterns so that they do not overlap"),
            )
        for each in chosen:
            owners[id(each.tensor)] = name
    return owners


def as_list(patterns: Patterns) -> list[str]:
    """Return one pattern or several as a list."""
    return [patterns] if isinstance(patterns, str) else list(patterns)


def fits(pattern: str, parameter: NamedParameter) -> bool:
    """Return whether a parameter fits a pattern."""
    text, _, condition = pattern.partition("@")
    if condition and not _meets(condition, parameter):
        return False
    if not text:
        return bool(condition)
    if WILDCARDS.intersection(text):
        return fnmatchcase(parameter.name, text)
    return f".{text}." in f".{parameter.name}." or _is_of_type(text, parameter.module)


def list_names(parameters: Iterable[NamedParameter], limit: int = 5) -> str:
    """Return the names of parameters as text, the first ones of a long list."""
    names = [each.name for each in parameters]
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _meets(condition: str, parameter: NamedParameter) -> bool:
    dimensions = DIMENSIONS.fullmatch(condition)
    if dimensions is not None:
        return parameter.tensor.ndim == int(dimensions[1])
    return _is_of_type(condition, parameter.module)


def _is_of_type(text: str, module: nn.Module) -> bool:
    kind = class_name(module)
    if text == "norm":
        return "norm" in kind.lower()
    return kind == text


def _suggest_pattern(pattern: str, known: list[NamedParameter]) -> Suggestion:
    """Return advice for a pattern that fits nothing."""
    text, _, condition = pattern.partition("@")
    if condition and any(fits(text, each) for each in known if text):
        return Suggestion(advice=f"parameters fit {text!r}, but none of them {condition!r}")
    words = {part for each in known for part in each.name.split(".") if not part.isdigit()}
    kinds = {class_name(each.module) for each in known}
    options = sorted({*words, *kinds, *(each.name for each in known)})
    return suggest(text or condition, options)
