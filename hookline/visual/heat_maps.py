"""Heat maps: outputs of layers side by side, and maps over an image.

These functions use numpy, not torch: they run in the drawing thread, and a second thread that
computes with torch starts its own OpenMP threads, which slow down those of the training.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from PIL import Image

from hookline.visual.canvas import Canvas
from hookline.visual.colors import BLACK, heat_colors
from hookline.visual.grid import ColorScale, Tile, draw_grid
from hookline.visual.images import enlarge_or_shrink, resize_map, zoom_to

# Lengths in pixels.
MIN_TILE_SIZE = 96
MAX_TILE_SIZE = 320
INPUT_SIZE = 128

# Opacity of the lowest and the highest value over an image.
OVERLAY_OPACITY = (0.35, 0.9)


def draw_feature_maps(
    maps: np.ndarray, title: str, names: Sequence[str] = (), image: np.ndarray | None = None
) -> Canvas:
    """Draw maps [count, H, W] side by side, each in the colors of its range. NaN stays white.

    Args:
        names: Captions of the maps; their numbers by default.
        image: The model's input [H, W, 3], drawn beside the maps.
    """
    tiles = []
    for index, values in enumerate(maps):
        name = names[index] if names else str(index)
        tiles.append(Tile(draw_map(values), [(name, BLACK), (describe_range(values), BLACK)]))
    lead = None
    if image is not None:
        lead = make_input_tile(image, INPUT_SIZE)
    scale = ColorScale("values, each map on its own scale", "lowest", "highest", "viridis")
    return draw_grid(tiles, title, lead=lead, scale=scale)


def make_input_tile(image: np.ndarray, size: int) -> Tile:
    """Return the input of a model, enlarged or shrunk to about `size` pixels."""
    return Tile(enlarge_or_shrink(image, zoom_to(image, size)), [("input", BLACK)])


def draw_map(values: np.ndarray) -> np.ndarray:
    """Return the colors of a map [H, W] on the scale of its range, enlarged or shrunk to a tile."""
    scaled = _scale_to_range(values.astype(np.float32))
    height, width = _tile_shape(*values.shape)
    if height < len(scaled) or width < scaled.shape[1]:
        size = min(width, scaled.shape[1]), min(height, len(scaled))
        scaled = np.asarray(Image.fromarray(scaled).resize(size, Image.Resampling.BOX))
    scaled = scaled.repeat(height // len(scaled), 0).repeat(width // scaled.shape[1], 1)
    return heat_colors(scaled)


def describe_range(values: np.ndarray) -> str:
    """Return the lowest and the highest finite value, such as `-0.2 to 1.5`."""
    finite = values[np.isfinite(values)]
    if not finite.size:
        return "no finite values"
    text = f"{finite.min():.3g} to {finite.max():.3g}"
    if finite.size < values.size:
        text += f", {values.size - finite.size} not finite"
    return text


def overlay(
    image: np.ndarray, heat: np.ndarray, opacity: tuple[float, float] = OVERLAY_OPACITY
) -> np.ndarray:
    """Lay a heat map of any size, scaled to its range, over an image [H, W, 3] of bytes.

    Args:
        opacity: Opacity of the lowest and of the highest value.
    """
    values = resize_map(unit_range(heat), *image.shape[:2])
    lowest, highest = opacity
    weight = (lowest + (highest - lowest) * values)[..., None]
    mixed = image * (1 - weight) + heat_colors(values, "inferno") * weight
    return np.asarray(mixed.round(), dtype=np.uint8)


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


def name_maps(sample: np.ndarray, limit: int) -> list[str]:
    """Return the captions of the maps that `as_maps` returns."""
    if sample.ndim >= 3:
        return [f"channel {index}" for index in range(min(limit, len(sample)))]
    if sample.ndim == 2:
        return [f"rows 0 to {min(limit, len(sample)) - 1}"]
    return ["all values"]


def _tile_shape(height: int, width: int) -> tuple[int, int]:
    """Return the size of the tile of a map; the map keeps its proportions if it is not too long."""
    shorter, longer = sorted((height, width))
    zoom: float = max(1, math.ceil(MIN_TILE_SIZE / shorter))
    if longer > MAX_TILE_SIZE:
        zoom = MAX_TILE_SIZE / longer
    if shorter * zoom >= MIN_TILE_SIZE and longer * zoom <= MAX_TILE_SIZE:
        return round(height * zoom), round(width * zoom)
    return _tile_side(height), _tile_side(width)


def _tile_side(length: int) -> int:
    if length <= MIN_TILE_SIZE:
        return length * math.ceil(MIN_TILE_SIZE / length)
    return min(length, MAX_TILE_SIZE)


def _scale_to_range(values: np.ndarray) -> np.ndarray:
    """Scale values to the range from 0 to 1; equal ones become 0, those not finite NaN."""
    is_finite = np.isfinite(values)
    if not is_finite.any():
        return np.full_like(values, np.nan)
    low = values[is_finite].min()
    span = max(values[is_finite].max() - low, np.finfo(np.float32).tiny)
    return np.where(is_finite, (np.where(is_finite, values, low) - low) / span, np.nan)
