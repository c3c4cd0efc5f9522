"""Segmentation masks over images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hookline.visual.classification import class_name, to_probabilities
from hookline.visual.colors import BLACK, Color, class_color
from hookline.visual.grid import ColoredText, Tile
from hookline.visual.images import enlarge_or_shrink, shape_text, zoom_to

TILE_SIZE = 192  # pixels
NO_CLASS = -1
MAX_LABELS = 255  # without class names; 255 usually marks ignored pixels
BACKGROUND_NAMES = ("background", "背景")


@dataclass(frozen=True)
class MaskStyle:
    """Looks of masks.

    Args:
        class_names: Names of the classes; a class without one is shown by its number.
        palette: Colors of the classes.
        opacity: Opacity of the colors over the image, from 0 to 1.
        show_edge: Whether the edges of masks are drawn opaque.
        background: Class that stays transparent; by default those with the name `background` or
            `背景`.
    """

    class_names: Sequence[str] = ()
    palette: Sequence[Color] = ()
    opacity: float = 0.5
    show_edge: bool = True
    background: int | None = None

    def is_transparent(self, label: int) -> bool:
        if self.background is not None:
            return label == self.background
        if not 0 <= label < len(self.class_names):
            return False
        return self.class_names[label].strip("_ ").lower() in BACKGROUND_NAMES


def find_class(background: int | str | None, class_names: Sequence[str]) -> int | None:
    """Return the number of a class that is given by its number or its name."""
    if not isinstance(background, str):
        return background
    if background not in class_names:
        known = ", ".join(class_names) or "none"
        raise ValueError(f"background: {background!r} is not a class name; known names: {known}")
    return list(class_names).index(background)


def make_mask_tile(image: np.ndarray, mask: np.ndarray, style: MaskStyle, caption: str) -> Tile:
    """Return an image [H, W, 3] under the colors of a mask [H, W]."""
    pixels = enlarge_or_shrink(image, zoom_to(image, TILE_SIZE)).astype(np.float32)
    mask = _resize_mask(mask, *pixels.shape[:2])
    edges = find_edges(mask)
    for label in visible_labels([mask], style):
        inside = mask == label
        color = np.array(class_color(label, style.palette), dtype=np.float32)
        # Blend with gray: the color matches the legend, whatever the colors of the image.
        gray = pixels[inside].mean(1, keepdims=True)
        pixels[inside] = gray * (1 - style.opacity) + color * style.opacity
        if style.show_edge:
            pixels[inside & edges] = color
    return Tile(pixels.round().astype(np.uint8), [(caption, BLACK)])


def make_legend(masks: Sequence[np.ndarray], style: MaskStyle) -> list[ColoredText]:
    """Return names and colors of the visible classes."""
    legend = []
    for label in visible_labels(masks, style):
        legend.append((class_name(label, style.class_names), class_color(label, style.palette)))
    return legend


def visible_labels(masks: Sequence[np.ndarray], style: MaskStyle) -> list[int]:
    """Return the classes that are drawn: those with names, or all below 255 if there are none."""
    limit = len(style.class_names) or MAX_LABELS
    found: set[int] = set()
    for mask in masks:
        found.update(np.unique(mask).tolist())
    return [
        label for label in sorted(found) if 0 <= label < limit and not style.is_transparent(label)
    ]


def find_edges(mask: np.ndarray) -> np.ndarray:
    """Return whether each pixel has a horizontal or vertical neighbor of another class."""
    edges = np.zeros(mask.shape, dtype=bool)
    differs_from_left = mask[:, 1:] != mask[:, :-1]
    edges[:, 1:] |= differs_from_left
    edges[:, :-1] |= differs_from_left
    differs_from_upper = mask[1:] != mask[:-1]
    edges[1:] |= differs_from_upper
    edges[:-1] |= differs_from_upper
    return edges


def read_masks(value: Any, count: int, field: str, score_thr: float = 0.0) -> list[np.ndarray]:
    """Read index maps [H, W].

    Args:
        value: A batch of index maps, of scores [classes, H, W], or of binary masks [classes, H, W].
        count: The number of images.
        field: `targets` or `predictions`, for error messages.
        score_thr: Pixels whose best class has a lower probability have no class.
    """
    if value is None:
        raise ValueError(f"the step returned no {field!r} to draw")
    expected = f"{field}: expected masks [N, H, W], scores or binary masks [N, classes, H, W]"
    if isinstance(value, np.ndarray):
        if value.ndim not in (3, 4):
            raise ValueError(f"{expected}, got {shape_text(value)}")
    elif not isinstance(value, list):
        raise ValueError(f"{expected}, got {type(value).__name__}")
    if len(value) < count:
        raise ValueError(f"{field}: {len(value)} masks for {count} images")
    return [_to_index_map(np.asarray(mask), field, score_thr) for mask in value]


def _to_index_map(mask: np.ndarray, field: str, score_thr: float) -> np.ndarray:
    if mask.ndim not in (2, 3):
        raise ValueError(
            f"{field}: expected a mask [H, W] or [classes, H, W], got {shape_text(mask)}"
        )
    is_binary = mask.dtype.kind in "biu" or bool(((mask == 0) | (mask == 1)).all())
    if mask.ndim == 3 and len(mask) > 1:
        if is_binary:
            return _merge_binary_masks(mask)
        return _most_probable_classes(mask, score_thr)
    has_channel_axis = mask.ndim == 3
    if has_channel_axis:
        mask = mask[0]
    if mask.dtype.kind != "f":
        return mask.astype(int)
    if is_binary or _is_between_0_and_1(mask):
        return (mask > 0.5).astype(int)
    if has_channel_axis:
        return (mask > 0).astype(int)  # scores of one class
    return mask.astype(int)


def _merge_binary_masks(masks: np.ndarray) -> np.ndarray:
    """Merge binary masks [classes, H, W]; where they overlap, the last one is on top."""
    indices = np.arange(len(masks))[:, None, None]
    return np.asarray(np.where(masks > 0, indices, NO_CLASS).max(0))


def _most_probable_classes(scores: np.ndarray, score_thr: float) -> np.ndarray:
    labels = np.asarray(scores.argmax(0))
    probabilities = to_probabilities(scores.reshape(len(scores), -1).T)
    labels[probabilities.max(1).reshape(labels.shape) < score_thr] = NO_CLASS
    return labels


def _is_between_0_and_1(values: np.ndarray) -> bool:
    return bool(values.size and values.min() >= 0 and values.max() <= 1)


def _resize_mask(mask: np.ndarray, height: int, width: int) -> np.ndarray:
    """Resize a mask by taking the nearest label."""
    rows = np.arange(height) * mask.shape[0] // height
    columns = np.arange(width) * mask.shape[1] // width
    return np.asarray(mask[rows[:, None], columns])
