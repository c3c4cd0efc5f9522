"""Weights of models written for OpenMMLab: their names, and loading those that fit."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch

MODULE_PREFIX = ((r"^module\.", ""),)  # removes the prefix of a model's wrapper


def rename_weights(
    weights: Mapping[str, Any], revise_keys: Iterable[tuple[str, str]] = MODULE_PREFIX
) -> OrderedDict[str, Any]:
    """Return the weights with each pattern replaced in their names."""
    renamed: Any = OrderedDict(weights)
    for pattern, replacement in revise_keys:
        pairs = [(re.sub(pattern, replacement, key), value) for key, value in renamed.items()]
        renamed = OrderedDict(pairs)
    renamed._metadata = getattr(weights, "_metadata", None)
    return renamed  # type: ignore[no-any-return]


def weights_to_cpu(state_dict: Mapping[str, Any]) -> OrderedDict[str, Any]:
    """Return the weights on the CPU, with the versions of their modules."""
    weights: Any = OrderedDict()
    for key, value in state_dict.items():
        weights[key] = value.cpu() if isinstance(value, torch.Tensor) else value
    weights._metadata = getattr(state_dict, "_metadata", OrderedDict())
    return weights  # type: ignore[no-any-return]


def load_fitting(
    model: torch.nn.Module,
    state_dict: Mapping[str, Any],
    unwrap: Callable[[Any], Any],
    strict: bool,
    warn: Callable[[str], object],
) -> None:
    """Load the weights that fit.

    Args:
        model: The model, or a wrapper of it.
        state_dict: The weights, with the versions of their modules.
        unwrap: Returns the module inside a wrapper, or the module itself.
        strict: Raise RuntimeError if there are others.
        warn: Gets a description of the others, if not `strict`.
    """
    missing: list[str] = []
    unexpected: list[str] = []
    problems: list[str] = []
    versions = getattr(state_dict, "_metadata", None) or {}
    weights = OrderedDict(state_dict)  # modules may rename weights of an older version in it

    def load(part: torch.nn.Module, prefix: str) -> None:
        part = unwrap(part)
        version = versions.get(prefix[:-1], {})
        part._load_from_state_dict(weights, prefix, version, True, missing, unexpected, problems)
        for name, child in part._modules.items():
            if child is not None:
                load(child, f"{prefix}{name}.")

    load(model, "")
    missing = [key for key in missing if "num_batches_tracked" not in key]
    if unexpected:
        problems.append(f"unexpected key in source state_dict: {', '.join(unexpected)}\n")
    if missing:
        problems.append(f"missing keys in source state_dict: {', '.join(missing)}\n")
    text = "\n".join(["The model and loaded state dict do not match exactly\n", *problems])
    if problems and strict:
        raise RuntimeError(text)
    if problems:
        warn(text)
