"""From a model's inputs to images that can be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image

DARK = 64  # a batch of bytes as numbers has something brighter; what goes only so far, as 8x8 digits to 16, has another scale
IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Scaling(NamedTuple):
    """How values become brightness: `value * factor + offset`, for each channel, is from 0 to 1."""

    factor: np.ndarray
    offset: np.ndarray
    note: str = ""  # what was guessed

    def __call__(self, image: np.ndarray) -> np.ndarray:
        return np.asarray(image * self.factor + self.offset)


def find_scaling(images: Sequence[np.ndarray], mean: Sequence[float] | None = None, std: Sequence[float] | None = None) -> Scaling:
    """How to show images [height, width, channels]: by the mean and std that they were normalised with, or by a guess."""
    if mean is not None or std is not None:
        return _given(images[0].shape[-1], mean, std)
    finite = [image[np.isfinite(image)] for image in images]
    low = min((float(values.min()) for values in finite if values.size), default=0.0)
    high = max((float(values.max()) for values in finite if values.size), default=0.0)
    one, zero = np.ones(1), np.zeros(1)
    if images[0].dtype == np.uint8 or (low >= 0 and DARK < high <= 255):
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
    """An image of shape [H, W], [C, H, W] or [H, W, C] as [H, W, C]; an axis of 1, 3 or 4, else the shorter one, is channels."""
    if image.ndim == 2:
        return image[:, :, None]
    if image.ndim != 3:
        raise ValueError(f"expected images [C, H, W] or [H, W, C], got {shape_text(image)}")
    first, last = image.shape[0], image.shape[-1]
    usual = (1, 3, 4)
    is_last = last in usual if first not in usual and last in usual else first not in usual and last < first
    return image if is_last else np.moveaxis(image, 0, -1)


def to_rgb(image: np.ndarray, scaling: Scaling) -> np.ndarray:
    """[H, W, C] as bytes [H, W, 3]: one channel is grey, of two the mean, of more than three the first three are shown."""
    scaled = np.nan_to_num(scaling(image.astype(np.float32)), nan=0.0, posinf=1.0, neginf=0.0)
    channels = scaled.shape[-1]
    if channels < 3:
        scaled = scaled.mean(-1, keepdims=True).repeat(3, -1)
    return np.asarray((np.clip(scaled[..., :3], 0, 1) * 255).round(), dtype=np.uint8)


def zoom_for(image: np.ndarray, wanted: int) -> float:
    """The factor that brings the longer side to about `wanted` pixels: a whole one for enlarging, so that no pixel is mixed."""
    longest = int(max(*image.shape[:2], 1))
    return max(1, wanted // longest) if longest <= wanted else wanted / longest


def zoomed(pixels: np.ndarray, zoom: float) -> np.ndarray:
    if zoom >= 1:
        return pixels.repeat(int(zoom), 1).repeat(int(zoom), 0)  # in this order whole rows are copied last
    height, width = (max(1, round(side * zoom)) for side in pixels.shape[:2])
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.BOX))


def resized(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """A map of numbers in another size, bilinear."""
    return np.asarray(Image.fromarray(values.astype(np.float32)).resize((width, height), Image.Resampling.BILINEAR))


def shape_text(array: np.ndarray) -> str:
    return f"[{', '.join(map(str, array.shape))}]"


def _given(channels: int, mean: Sequence[float] | None, std: Sequence[float] | None) -> Scaling:
    offset = np.asarray([0.0] if mean is None else mean, dtype=np.float32)
    factor = np.asarray([1.0] if std is None else std, dtype=np.float32)
    for name, values in (("mean", offset), ("std", factor)):
        if len(values) not in (1, channels):
            raise ValueError(f"{name} has {len(values)} values, but the inputs have {channels} channels")
    bytes_like = max(offset.max(), factor.max()) > 2  # given for values from 0 to 255
    return Scaling(factor / 255, offset / 255) if bytes_like else Scaling(factor, offset)
