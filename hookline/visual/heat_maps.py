"""Heat maps: what layers put out, and what a model looks at.

Arrays, not tensors: this runs in the painter's thread, and a second thread that computes with torch would have a pool of OpenMP threads
of its own, beside which those of the training sleep instead of waiting: on two cores the whole demo took a fifth longer.
"""

from __future__ import annotations

import math

import numpy as np

from hookline.visual.canvas import Picture, blank, shorten
from hookline.visual.colours import heat_colours
from hookline.visual.images import resized

TILE = 48  # pixels that the longer side of a small map is blown up to
GAP = 2  # pixels between two maps
WIDTH = 240  # the least width of a picture, so that its title has room
TITLE = 22
OPACITY = 0.55  # of a heat map over an image


def feature_map_picture(maps: np.ndarray, title: str) -> Picture:
    """Maps of the shape [count, height, width] side by side, each scaled to its own range; what is not a number stays white."""
    tiles = mosaic(maps)
    height, width = tiles.shape
    picture = blank(height + TITLE, max(width, WIDTH))
    picture.paste(heat_colours(tiles), (picture.pixels.shape[1] - width) // 2, TITLE)
    picture.write(picture.pixels.shape[1] / 2, TITLE / 2, shorten(title, 11, picture.pixels.shape[1] - 8), 11, align="center")
    return picture


def overlay(image: np.ndarray, heat: np.ndarray, opacity: float = OPACITY) -> np.ndarray:
    """An image [H, W, 3] of bytes under a heat map of any size, scaled to its own range."""
    height, width = image.shape[:2]
    heat = resized(unit_range(heat), height, width)
    return (image * (1 - opacity) + heat_colours(heat, "inferno") * opacity).round().astype(np.uint8)


def unit_range(values: np.ndarray) -> np.ndarray:
    """From 0 to 1; what is not finite, or all the same, is 0."""
    values = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = float(values.min()), float(values.max())
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def as_maps(sample: np.ndarray, limit: int) -> np.ndarray:
    """One sample's output as at most `limit` maps [count, height, width].

    Channels become maps (of a volume its middle slice), a sequence [channels, length] one map with a row for each channel.
    """
    if sample.ndim >= 4:
        sample = sample.reshape(len(sample), -1, *sample.shape[-2:])
        sample = sample[:, sample.shape[1] // 2]
    if sample.ndim <= 2:
        return sample.reshape(-1, sample.shape[-1] if sample.ndim else 1)[None, :limit]
    return sample[:limit]


def mosaic(maps: np.ndarray) -> np.ndarray:
    """One picture of all maps, row by row in a grid that is about square; NaN between them and where they are not finite."""
    count, height, width = maps.shape
    zoom = max(1, TILE // max(height, width))
    tiles = _scaled(maps.astype(np.float32)).repeat(zoom, 2).repeat(zoom, 1)
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    step_y, step_x = height * zoom + GAP, width * zoom + GAP
    picture = np.full((rows * step_y - GAP, columns * step_x - GAP), math.nan, np.float32)
    for index, tile in enumerate(tiles):
        top, left = index // columns * step_y, index % columns * step_x
        picture[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
    return picture


def _scaled(maps: np.ndarray) -> np.ndarray:
    """Each map between 0 and 1; a constant one is 0."""
    finite = np.isfinite(maps)
    maps = np.where(finite, maps, np.nan)
    low = np.min(maps, axis=(1, 2), keepdims=True, where=finite, initial=np.inf)
    high = np.max(maps, axis=(1, 2), keepdims=True, where=finite, initial=-np.inf)
    span = np.maximum(high - low, np.finfo(np.float32).tiny)
    return np.asarray((maps - low) / span)
