"""Gradient clipping by norm or by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm

from hookline.errors import ConfigError, suggest

Clip = Callable[[list[torch.Tensor]], torch.Tensor]
KEYS = ("max_norm", "norm_type", "error_if_nonfinite", "clip_value")
LIMITS = ("max_norm", "clip_value")


def make_clip(owner: str, config: Mapping[str, Any]) -> Clip:
    """Return a function that clips gradients and returns their norm before clipping.

    Args:
        owner: The hook, for error messages.
        config: `{max_norm: …, norm_type: 2}`, the arguments of `torch.nn.utils.clip_grad_norm_`,
            or `{clip_value: …}`.
    """
    _check(owner, config)
    norm_type = float(config.get("norm_type", 2.0))
    if "max_norm" in config:
        options = {**config, "norm_type": norm_type}
        return lambda params: _unshard(clip_grad_norm_(params, **options))
    limit = config["clip_value"]
    return lambda params: _clip_value(params, limit, norm_type)


def _check(owner: str, config: Mapping[str, Any]) -> None:
    about: dict[str, Any] = {"component": owner, "parameter": "grad_clip"}
    for key in config:
        if key not in KEYS:
            message = f"grad_clip has no {key!r}"
            raise ConfigError(message, suggestion=suggest(key, KEYS), **about)
    given = [key for key in LIMITS if key in config]
    if len(given) != 1:
        message = "grad_clip needs either 'max_norm' or 'clip_value'"
        raise ConfigError(message, value=dict(config), **about)
    limit = config[given[0]]
    if not isinstance(limit, (int, float)) or not limit > 0:
        message = f"{given[0]} of grad_clip must be a number above 0"
        raise ConfigError(message, value=limit, **about)


def _clip_value(params: list[torch.Tensor], limit: float, norm_type: float) -> torch.Tensor:
    gradients = [param.grad for param in params if param.grad is not None]
    norm = get_total_norm(gradients, norm_type)
    clip_grad_value_(params, limit)
    return _unshard(norm)


def _unshard(norm: torch.Tensor) -> torch.Tensor:
    """Return the whole norm: that of sharded parameters is sharded."""
    if type(norm) is torch.Tensor:
        return norm
    return norm.full_tensor()  # type: ignore[attr-defined, no-any-return]
