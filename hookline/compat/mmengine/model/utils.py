"""Helpers of models."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


def stack_batch(tensor_list: list[torch.Tensor], pad_size_divisor: int = 1, pad_value: float = 0) -> torch.Tensor:
    """Tensors of different sizes as one: padded at the right and bottom, to a multiple of a size."""
    dims = [max(tensor.shape[axis] for tensor in tensor_list) for axis in range(tensor_list[0].ndim)]
    wanted = [dims[0], *(math.ceil(size / pad_size_divisor) * pad_size_divisor for size in dims[1:])]
    padded = []
    for tensor in tensor_list:
        room = [(0, size - have) for size, have in zip(wanted, tensor.shape, strict=True)]
        padded.append(F.pad(tensor, [pad for pair in reversed(room) for pad in pair], value=pad_value))
    return torch.stack(padded)


def merge_dict(*args: dict[str, Any]) -> dict[str, Any]:
    return {key: value for each in args for key, value in each.items()}


def normalized(preprocessor: Any, image: torch.Tensor) -> torch.Tensor:
    """An image as an ImgDataPreprocessor wants it, apart from padding."""
    if preprocessor._channel_conversion:
        image = image[[2, 1, 0], ...]
    image = image.float()
    if not preprocessor._enable_normalize:
        return image
    if preprocessor.mean.shape[0] == 3 and (image.dim() != 3 or image.shape[0] != 3):
        raise AssertionError(f"If the mean has 3 values, the input tensor should in shape of (3, H, W), but got {tuple(image.shape)}")
    return (image - preprocessor.mean) / preprocessor.std  # type: ignore[no-any-return]


def revert_sync_batchnorm(module: nn.Module) -> nn.Module:
    """A model with plain batch norm in the place of synchronized one, which works only in a distributed job."""
    if isinstance(module, nn.SyncBatchNorm):
        plain = nn.BatchNorm2d(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
        plain._check_input_dim = lambda input: None  # type: ignore[method-assign]  # of any number of dimensions, as it was
        plain.load_state_dict(module.state_dict())
        return plain.train(module.training)
    for name, child in module.named_children():
        changed = revert_sync_batchnorm(child)
        if changed is not child:
            setattr(module, name, changed)
    return module
