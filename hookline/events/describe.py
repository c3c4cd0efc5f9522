"""Descriptions of a run as text and plain values: its config and its model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
import yaml
from torch.nn.parameter import is_lazy

from hookline.events.format import format_bytes
from hookline.secrets import mask_secrets

LONGEST = 20_000  # characters of a model's description


def run_config(runner: Any) -> dict[str, Any]:
    """Return the config with secrets masked, or a description of a run built from objects."""
    if runner.config:
        return dict(mask_secrets(runner.config))
    optimizer = runner.optimizer
    groups = getattr(optimizer, "param_groups", [])
    plain = (bool, int, float, str)
    first = (
        {key: value for key, value in groups[0].items() if isinstance(value, plain)}
        if groups
        else {}
    )
    return {
        "model": type(runner.model).__name__,
        "optimizer": {"type": type(optimizer).__name__, **first},
        "loss": type(runner.loss_fn).__name__,
        "max_epochs": runner.max_epochs,
        "max_iters": runner.max_iters,
        "seed": runner.seed,
    }


def config_text(config: Mapping[str, Any]) -> str:
    """Return a config as YAML."""
    return yaml.safe_dump(_plain(config), sort_keys=False, allow_unicode=True)


def flat(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return `{"optimizer": {"lr": 0.1}}` as `{"optimizer.lr": 0.1}`."""
    return dict(_leaves(config, ""))


def describe_model(model: torch.nn.Module) -> str:
    """Return one line about a model: its layers, parameters and memory.

    A layer is a module that has parameters itself. Parameters without a shape, of lazy modules, do
    not count.
    """
    tensors = [each for each in (*model.parameters(), *model.buffers()) if not is_lazy(each)]
    shaped = [each for each in model.parameters() if not is_lazy(each)]
    total = sum(each.numel() for each in shaped)
    trained = sum(each.numel() for each in shaped if each.requires_grad)
    layers = sum(any(True for _ in each.parameters(recurse=False)) for each in model.modules())
    size = sum(each.numel() * each.element_size() for each in tensors)
    return (
        f"{type(model).__name__}, {_count(layers, 'layer')}, {_count(total, 'parameter')} "
        f"({trained:,} trainable), {format_bytes(size)}"
    )


def summary(model: torch.nn.Module) -> str:
    """Return the description of a model, and its layers."""
    return f"{describe_model(model)}\n\n{str(model)[:LONGEST]}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)) and any(
        isinstance(item, (Mapping, list, tuple)) for item in value
    ):
        for index, item in enumerate(value):
            yield from _leaves(item, f"{path}.{index}")
    else:
        yield path, _plain(value)
