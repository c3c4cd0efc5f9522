"""Gradient clipping, by norm or by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.nn.utils import clip_grad_norm_, clip_grad_value_, get_total_norm

from hookline.errors import suggest

Clip = Callable[[list[torch.Tensor]], torch.Tensor]
KEYS = ("max_norm", "norm_type", "error_if_nonfinite", "clip_value")


def make_clip(owner: str, config: Mapping[str, Any]) -> Clip:
    """A function that clips the gradients of parameters and returns their norm before that.

    The config is `{max_norm: …, norm_type: 2}`, as `torch.nn.utils.clip_grad_norm_` takes it, or `{clip_value: …}`.
    """
    for key in config:
        if key not in KEYS:
            raise ValueError(f"{owner}: grad_clip has no {key!r}{suggest(key, KEYS)}")
    if ("max_norm" in config) == ("clip_value" in config):
        raise ValueError(f"{owner}: grad_clip needs either 'max_norm' or 'clip_value', got {dict(config)!r}")
    for key in ("max_norm", "clip_value"):
        if key in config and (not isinstance(config[key], (int, float)) or not config[key] > 0):
            raise ValueError(f"{owner}: {key} of grad_clip must be a number above 0, got {config[key]!r}")
    if "max_norm" in config:
        options = {**config, "norm_type": float(config.get("norm_type", 2.0))}
        return lambda params: _whole(clip_grad_norm_(params, **options))
    limit, norm_type = config["clip_value"], float(config.get("norm_type", 2.0))
    return lambda params: _clip_value(params, limit, norm_type)


def _clip_value(params: list[torch.Tensor], limit: float, norm_type: float) -> torch.Tensor:
    norm = get_total_norm([param.grad for param in params if param.grad is not None], norm_type)
    clip_grad_value_(params, limit)
    return _whole(norm)


def _whole(norm: torch.Tensor) -> torch.Tensor:
    """Sharded parameters have a sharded norm."""
    return norm if type(norm) is torch.Tensor else norm.full_tensor()  # type: ignore[attr-defined]
