"""Helpers for models."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


def stack_batch(
    tensor_list: list[torch.Tensor], pad_size_divisor: int = 1, pad_value: float = 0
) -> torch.Tensor:
    """Stack tensors of different sizes, padded at the right and bottom.

    All sizes but the first one become multiples of `pad_size_divisor`.
    """
    sizes = []
    for axis in range(tensor_list[0].ndim):
        size = max(tensor.shape[axis] for tensor in tensor_list)
        if axis > 0:
            size = math.ceil(size / pad_size_divisor) * pad_size_divisor
        sizes.append(size)
    padded = []
    for tensor in tensor_list:
        padding = []  # F.pad expects the last axis first
        for size, current in zip(reversed(sizes), reversed(tensor.shape), strict=True):
            padding += [0, size - current]
        padded.append(F.pad(tensor, padding, value=pad_value))
    return torch.stack(padded)


def merge_dict(*args: dict[str, Any]) -> dict[str, Any]:
    """Merge dicts; later ones take precedence."""
    merged: dict[str, Any] = {}
    for each in args:
        merged.update(each)
    return merged


class BatchNormOfAnyDimension(nn.BatchNorm2d):
    """Batch norm for inputs with any number of dimensions, as in SyncBatchNorm."""

    def _check_input_dim(self, input: torch.Tensor) -> None:
        """Accept all inputs."""


def revert_sync_batchnorm(module: nn.Module) -> nn.Module:
    """Replace synchronized batch norm, which only works in a distributed job, by plain one."""
    if isinstance(module, nn.SyncBatchNorm):
        plain = BatchNormOfAnyDimension(
            module.num_features,
            module.eps,
            module.momentum,
            module.affine,
            module.track_running_stats,
        )
        plain.load_state_dict(module.state_dict())
        return plain.train(module.training)
    for name, child in module.named_children():
        changed = revert_sync_batchnorm(child)
        if changed is not child:
            setattr(module, name, changed)
    return module
