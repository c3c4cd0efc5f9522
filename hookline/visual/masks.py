"""Masks of classes over images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hookline.visual.colours import Colour, colour_of
from hookline.visual.grid import Tile
from hookline.visual.images import shape_text, zoom_for, zoomed

TILE = 192
NONE = -1  # no class at a pixel


@dataclass(frozen=True)
class MaskStyle:
    """How masks look. A class 0 that is called background is left clear."""

    names: Sequence[str] = ()
    palette: Sequence[Colour] = ()
    opacity: float = 0.5
    show_edge: bool = True

    def is_clear(self, label: int) -> bool:
        return label == 0 and bool(self.names) and self.names[0].strip("_").lower() == "background"


def mask_tile(image: np.ndarray, mask: np.ndarray, style: MaskStyle, caption: str) -> Tile:
    """An image [H, W, 3] under the colours of a mask [H, W]."""
    if mask.shape != image.shape[:2]:
        mask = _resized(mask, *image.shape[:2])
    zoom = zoom_for(mask, TILE)
    pixels = zoomed(image, zoom).astype(np.float32)
    mask = mask.repeat(int(zoom), 0).repeat(int(zoom), 1) if zoom >= 1 else _resized(mask, *pixels.shape[:2])
    for label in labels_in([mask], style):
        inside = mask == label
        colour = np.array(colour_of(label, style.palette), dtype=np.float32)
        grey = pixels[inside].mean(1, keepdims=True)  # so that what is seen is the legend's colour, whatever is below it
        pixels[inside] = grey * (1 - style.opacity) + colour * style.opacity
        if style.show_edge:
            pixels[inside & edges(mask)] = colour
    return Tile(pixels.round().astype(np.uint8), [(caption, (0, 0, 0))])


def legend_of(masks: Sequence[np.ndarray], style: MaskStyle) -> list[tuple[str, Colour]]:
    """Names and colours of the classes that are to be seen."""
    labels = labels_in(masks, style)
    return [(style.names[label] if label < len(style.names) else str(label), colour_of(label, style.palette)) for label in labels]


def labels_in(masks: Sequence[np.ndarray], style: MaskStyle) -> list[int]:
    """The classes that are drawn: those of the names if there are any (so that 255 for `ignore` is not), never the clear one."""
    found = sorted({int(label) for mask in masks for label in np.unique(mask)})
    limit = len(style.names) or 255
    return [label for label in found if 0 <= label < limit and not style.is_clear(label)]


def edges(mask: np.ndarray) -> np.ndarray:
    """The pixels whose right or lower neighbour, or left or upper one, is of another class."""
    result = np.zeros(mask.shape, dtype=bool)
    across, down = mask[:, 1:] != mask[:, :-1], mask[1:] != mask[:-1]
    result[:, 1:] |= across
    result[:, :-1] |= across
    result[1:] |= down
    result[:-1] |= down
    return result


def read_masks(value: Any, count: int, what: str) -> list[np.ndarray]:
    """`count` index maps [H, W] from a batch of index maps, of scores [classes, H, W], or of stacks of binary masks [classes, H, W]."""
    if value is None:
        raise ValueError(f"the step gave no {what!r} to draw")
    if not isinstance(value, (np.ndarray, list)) or (isinstance(value, np.ndarray) and value.ndim not in (3, 4)):
        got = shape_text(value) if isinstance(value, np.ndarray) else type(value).__name__
        raise ValueError(f"{what}: expected masks [N, H, W], scores or binary masks [N, classes, H, W], got {got}")
    if len(value) < count:
        raise ValueError(f"{what}: {len(value)} masks for {count} images")
    return [_index_map(np.asarray(mask), what) for mask in value]


def _index_map(mask: np.ndarray, what: str) -> np.ndarray:
    if mask.ndim == 2:
        return np.asarray(mask > 0.5 if mask.dtype.kind == "f" and _between_0_and_1(mask) else mask, dtype=int)
    if mask.ndim != 3:
        raise ValueError(f"{what}: expected a mask [H, W] or [classes, H, W], got {shape_text(mask)}")
    binary = mask.dtype.kind in "biu" or bool(((mask == 0) | (mask == 1)).all())  # also as numbers that a loss wants
    if mask.shape[0] == 1 and not (binary and mask.max(initial=0) > 1):
        return np.asarray(mask[0] > (0.5 if binary or _between_0_and_1(mask) else 0.0), dtype=int)  # one score: a class or not
    if mask.shape[0] == 1:
        return np.asarray(mask[0], dtype=int)  # an index map with an axis for its channel
    if binary:
        numbers = np.arange(len(mask))[:, None, None]
        return np.asarray(np.where(mask > 0, numbers, NONE).max(0))  # where several overlap, the last one is on top
    return np.asarray(mask.argmax(0))


def _between_0_and_1(values: np.ndarray) -> bool:
    return bool(values.size and values.min() >= 0 and values.max() <= 1)


def _resized(mask: np.ndarray, height: int, width: int) -> np.ndarray:
    """The nearest label for each pixel of another size."""
    rows = np.arange(height) * mask.shape[0] // height
    columns = np.arange(width) * mask.shape[1] // width
    return np.asarray(mask[rows[:, None], columns])
