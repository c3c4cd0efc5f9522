"""Conversion of model inputs into images for people: layout, brightness and size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

# A batch of bytes stored as floats has a brighter pixel than this. Data with a smaller maximum,
# such as digits from 0 to 16, has another scale.
MIN_BRIGHTEST_BYTE = 64
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
CHANNELS = (1, 3, 4)


class Scaling(NamedTuple):
    """A conversion of values to brightness from 0 to 1: `value * factor + offset` per channel.

    `guess` describes the normalization that was assumed; empty if nothing had to be guessed.
    """

    factor: np.ndarray
    offset: np.ndarray
    guess: str = ""

    def apply(self, image: np.ndarray) -> np.ndarray:
        return np.asarray(image * self.factor + self.offset)


def find_scaling(
    images: Sequence[np.ndarray],
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> Scaling:
    """Find the scaling of images [H, W, C] from their normalization, or guess it from the values.

    Args:
        mean: The mean that was subtracted, one number or one per channel.
        std: The standard deviation that was divided by.
    """
    if mean is not None or std is not None:
        return _undo_normalization(images[0].shape[-1], mean, std)
    low, high = _finite_range(images)
    one = np.ones(1)
    zero = np.zeros(1)
    if images[0].dtype == np.uint8 or (low >= 0 and MIN_BRIGHTEST_BYTE < high <= 255):
        return Scaling(one / 255, zero)
    if low >= 0 and high <= 1:
        return Scaling(one, zero)
    if low >= -1 and high <= 1:
        return Scaling(one / 2, one / 2, "mean 0.5 and std 0.5")
    if images[0].shape[-1] == 3 and low >= -2.2 and high <= 2.7:
        return Scaling(np.array(IMAGENET_STD), np.array(IMAGENET_MEAN), "ImageNet's mean and std")
    span = max(high - low, 1e-12)
    return Scaling(one / span, -low * one / span, f"darkest {low:.3g} and brightest {high:.3g}")


def channels_last(image: np.ndarray) -> np.ndarray:
    """Return an image [H, W], [C, H, W] or [H, W, C] as [H, W, C].

    The channels are an axis of length 1, 3 or 4, the first one if both are, else the shorter one.
    """
    if image.ndim == 2:
        return image[:, :, None]
    if image.ndim != 3:
        raise ValueError(f"expected images [C, H, W] or [H, W, C], got {shape_text(image)}")
    first, _, last = image.shape
    if first in CHANNELS:
        is_last = False
    else:
        is_last = last in CHANNELS or last < first
    return image if is_last else np.moveaxis(image, 0, -1)


def to_rgb(image: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Convert an image [H, W, C] to bytes [H, W, 3].

    One channel is drawn gray, two as their mean, and of more than three the first three.
    """
    scaled = scaling.apply(image.astype(np.float32))
    scaled = np.nan_to_num(scaled, nan=0.0, posinf=1.0, neginf=0.0)
    if scaled.shape[-1] < 3:
        scaled = scaled.mean(-1, keepdims=True).repeat(3, -1)
    brightness = np.clip(scaled[..., :3], 0, 1) * 255
    return np.asarray(brightness.round(), dtype=np.uint8)


def zoom_to(image: np.ndarray, size: int) -> float:
    """Return the factor that brings the longer side of an image to at most `size` pixels.

    A factor above 1 is a whole number, so that enlarged pixels are not mixed.
    """
    height, width = image.shape[:2]
    longer_side: int = max(height, width, 1)
    if longer_side > size:
        return size / longer_side
    return size // longer_side


def enlarge_or_shrink(pixels: np.ndarray, zoom: float) -> np.ndarray:
    """Resize an image of bytes by a factor from `zoom_to`."""
    if zoom >= 1:
        return pixels.repeat(int(zoom), 1).repeat(int(zoom), 0)
    height = max(1, round(pixels.shape[0] * zoom))
    width = max(1, round(pixels.shape[1] * zoom))
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX))


def resize_map(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """Resize a map of numbers [H, W], with bilinear interpolation."""
    image = Image.fromarray(values.astype(np.float32))
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))


def shape_text(array: np.ndarray) -> str:
    """Return the shape of an array for an error message, such as `[8, 3, 4]`."""
    return str(list(array.shape))


def _finite_range(images: Sequence[np.ndarray]) -> tuple[float, float]:
    """Return the smallest and the largest finite value, both 0 if there is none."""
    finite = np.concatenate([image[np.isfinite(image)] for image in images])
    if not finite.size:
        return 0.0, 0.0
    return float(finite.min()), float(finite.max())


def _undo_normalization(
    channels: int, mean: Sequence[float] | None, std: Sequence[float] | None
) -> Scaling:
    offset = np.asarray([0.0] if mean is None else mean, dtype=np.float32)
    factor = np.asarray([1.0] if std is None else std, dtype=np.float32)
    for name, values in (("mean", offset), ("std", factor)):
        if len(values) not in (1, channels):
            raise ValueError(
                f"{name} has {len(values)} values, but the inputs have {channels} channels"
            )
    is_for_bytes = max(offset.max(), factor.max()) > 2
    if is_for_bytes:
        return Scaling(factor / 255, offset / 255)
    return Scaling(factor, offset)
