"""Draw the images of a batch as one grid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

MAX_IMAGES = 16
FRAME = 2  # pixels around each
GREY, GREEN, RED = (128, 128, 128), (0, 160, 60), (200, 30, 30)


def image_grid(
    inputs: Any, predictions: Any = None, targets: Any = None
) -> np.ndarray[Any, Any] | None:
    """Return a grid of the first images, with green frames for correct classes, otherwise red.

    Return None if the inputs are not images (a tensor of shape NCHW with 1 or 3 channels).
    """
    if (
        not isinstance(inputs, torch.Tensor)
        or inputs.ndim != 4
        or inputs.shape[1] not in (1, 3)
        or not len(inputs)
    ):
        return None
    images = inputs[:MAX_IMAGES].detach().float().cpu()
    low, high = images.amin(), images.amax()
    images = (
        ((images - low) / (high - low).clamp(min=1e-12) * 255)
        .byte()
        .expand(-1, 3, -1, -1)
        .permute(0, 2, 3, 1)
    )
    return _tiled(images.numpy(), _frames(len(images), predictions, targets))


def _frames(count: int, predictions: Any, targets: Any) -> list[tuple[int, int, int]]:
    tensors = isinstance(predictions, torch.Tensor) and isinstance(targets, torch.Tensor)
    if not tensors or predictions.ndim != 2 or targets.ndim != 1 or targets.is_floating_point():
        return [GREY] * count
    right = (predictions[:count].detach().argmax(1) == targets[:count]).tolist()
    return [GREEN if each else RED for each in right]


def _tiled(
    images: np.ndarray[Any, Any], frames: list[tuple[int, int, int]]
) -> np.ndarray[Any, Any]:
    columns = math.ceil(math.sqrt(len(images)))
    rows = math.ceil(len(images) / columns)
    height, width = images.shape[1] + 2 * FRAME, images.shape[2] + 2 * FRAME
    picture = np.full((rows * height, columns * width, 3), 255, dtype=np.uint8)
    for index, (image, frame) in enumerate(zip(images, frames, strict=True)):
        top, left = index // columns * height, index % columns * width
        picture[top : top + height, left : left + width] = frame
        picture[top + FRAME : top + height - FRAME, left + FRAME : left + width - FRAME] = image
    return picture
