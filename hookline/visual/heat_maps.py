"""Heat maps of what layers put out."""

from __future__ import annotations

import math

import matplotlib
import torch
from matplotlib.figure import Figure

TILE = 48  # pixels that the longer side of a small map is blown up to
GAP = 2  # pixels between two maps


def feature_map_figure(maps: torch.Tensor, title: str) -> Figure:
    """Maps of the shape [count, height, width] side by side, each scaled to its own range; what is not a number stays white."""
    picture = mosaic(maps)
    height, width = picture.shape
    inches = min(max(6 * height / width, 1.0), 12.0)
    figure = Figure(figsize=(6, inches + 0.5), dpi=100)
    axes = figure.add_axes((0.01, 0.01, 0.98, inches / (inches + 0.5)))
    colours = matplotlib.colormaps["viridis"].with_extremes(bad="white")
    axes.imshow(picture.numpy(), cmap=colours, vmin=0, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    figure.text(0.5, 1 - 0.25 / (inches + 0.5), title, ha="center", va="center", fontsize=10, parse_math=False)
    return figure


def as_maps(sample: torch.Tensor, limit: int) -> torch.Tensor:
    """One sample's output as at most `limit` maps [count, height, width].

    Channels become maps (of a volume its middle slice), a sequence [channels, length] one map with a row for each channel.
    """
    if sample.ndim >= 4:
        sample = sample.flatten(1, -3)
        sample = sample[:, sample.shape[1] // 2]
    if sample.ndim <= 2:
        return sample.reshape(-1, sample.shape[-1] if sample.ndim else 1)[None, :limit]
    return sample[:limit]


def mosaic(maps: torch.Tensor) -> torch.Tensor:
    """One picture of all maps, row by row in a grid that is about square; NaN between them and where they are not finite."""
    count, height, width = maps.shape
    maps = _scaled(maps.detach().float().cpu())
    zoom = max(1, TILE // max(height, width))
    tiles = maps.repeat_interleave(zoom, 1).repeat_interleave(zoom, 2)
    columns = math.ceil(math.sqrt(count))
    rows = math.ceil(count / columns)
    step_y, step_x = height * zoom + GAP, width * zoom + GAP
    picture = torch.full((rows * step_y - GAP, columns * step_x - GAP), math.nan)
    for index, tile in enumerate(tiles):
        top, left = index // columns * step_y, index % columns * step_x
        picture[top : top + tile.shape[0], left : left + tile.shape[1]] = tile
    return picture


def _scaled(maps: torch.Tensor) -> torch.Tensor:
    """Each map between 0 and 1; a constant one is 0."""
    finite = maps.isfinite()
    low = maps.where(finite, torch.inf).amin((1, 2), keepdim=True)
    high = maps.where(finite, -torch.inf).amax((1, 2), keepdim=True)
    span = (high - low).clamp_min(torch.finfo(maps.dtype).tiny)
    return ((maps - low) / span).where(finite, torch.nan)
