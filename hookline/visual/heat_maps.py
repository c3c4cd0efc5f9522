"""Heat maps: outputs of layers side by side, and maps over an image.

These functions use numpy, not torch: they run in the drawing thread, and a second thread that
computes with torch starts its own OpenMP threads, which slow down those of the training.
"""

from __future__ import annotations

import math

import numpy as np

from hookline.visual.canvas import Canvas, Raster, Text
from hookline.visual.colors import heat_colors
from hookline.visual.images import resize_map
from hookline.visual.text import shorten

# Lengths in pixels.
TILE_SIZE = 48  # of the longer side of a small map, enlarged
GAP = 2
MIN_WIDTH = 240  # leaves room for the title
TITLE_HEIGHT = 22
TITLE_SIZE = 11

OVERLAY_OPACITY = 0.55


def draw_feature_maps(maps: np.ndarray, title: str) -> Canvas:
    """Draw maps [count, H, W] side by side, each scaled to its range. NaN stays white."""
    pixels = heat_colors(make_mosaic(maps))
    height, width = pixels.shape[:2]
    canvas = Canvas(height + TITLE_HEIGHT, max(width, MIN_WIDTH))
    short_title = shorten(title, TITLE_SIZE, canvas.width - 8)
    canvas.add(
        Raster((canvas.width - width) // 2, TITLE_HEIGHT, pixels),
        Text(canvas.width / 2, TITLE_HEIGHT / 2, short_title, TITLE_SIZE, align="center"),
    )
    return canvas


def overlay(image: np.ndarray, heat: np.ndarray, opacity: float = OVERLAY_OPACITY) -> np.ndarray:
    """Lay a heat map of any size, scaled to its range, over an image [H, W, 3] of bytes."""
    height, width = image.shape[:2]
    colors = heat_colors(resize_map(unit_range(heat), height, width), "inferno")
    return (image * (1 - opacity) + colors * opacity).round().astype(np.uint8)


def unit_range(values: np.ndarray) -> np.ndarray:
    """Scale values to the range from 0 to 1. Values that are not finite, or all equal, become 0."""
    values = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    low = float(values.min())
    high = float(values.max())
    if high <= low:
        return np.zeros_like(values)
    return (values - low) / (high - low)


def as_maps(sample: np.ndarray, limit: int) -> np.ndarray:
    """Return the output of a layer for one sample as at most `limit` maps [count, H, W].

    Each channel becomes a map, the middle slice for a volume. A sequence [channels, length]
    becomes one map with a row per channel.
    """
    if sample.ndim >= 4:
        sample = sample.reshape(len(sample), -1, *sample.shape[-2:])
        sample = sample[:, sample.shape[1] // 2]
    if sample.ndim == 3:
        return sample[:limit]
    rows = np.atleast_2d(sample)
    return rows[None, :limit]


def make_mosaic(maps: np.ndarray) -> np.ndarray:
    """Arrange maps in a grid that is about square, each scaled to the range from 0 to 1.

    The mosaic is NaN between the maps and where they are not finite.
    """
    count, height, width = maps.shape
    zoom = max(1, TILE_SIZE // max(height, width))
    tiles = _scale_each(maps.astype(np.float32)).repeat(zoom, 2).repeat(zoom, 1)
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    row_step = height * zoom + GAP
    column_step = width * zoom + GAP
    mosaic = np.full((rows * row_step - GAP, columns * column_step - GAP), np.nan, np.float32)
    for index, tile in enumerate(tiles):
        top = index // columns * row_step
        left = index % columns * column_step
        mosaic[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
    return mosaic


def _scale_each(maps: np.ndarray) -> np.ndarray:
    """Scale each map to the range from 0 to 1; a constant one becomes 0."""
    is_finite = np.isfinite(maps)
    maps = np.where(is_finite, maps, np.nan)
    low = np.min(maps, axis=(1, 2), keepdims=True, where=is_finite, initial=np.inf)
    high = np.max(maps, axis=(1, 2), keepdims=True, where=is_finite, initial=-np.inf)
    span = np.maximum(high - low, np.finfo(np.float32).tiny)
    return np.asarray((maps - low) / span)
