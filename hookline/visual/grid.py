"""A grid of images with captions, below a title and above a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hookline.visual.canvas import Canvas, Raster, Rectangle, Shape, Text
from hookline.visual.colors import BLACK, Color, heat_colors
from hookline.visual.text import shorten, text_width

# Lengths in pixels.
GAP = 8
MARGIN = 10
TITLE_HEIGHT = 26
TITLE_SIZE = 12
CAPTION_HEIGHT = 16
CAPTION_SIZE = 11
MIN_TILE_WIDTH = 96  # leaves room for a caption
FRAME = 3
LEGEND_ROW_HEIGHT = 24
SWATCH = 14
SCALE_WIDTH = 120
SCALE_HEIGHT = 12

ColoredText = tuple[str, Color]


@dataclass
class Tile:
    """An image with shapes over it, lines of text below it, and perhaps a frame around it."""

    pixels: np.ndarray
    captions: Sequence[ColoredText] = ()
    frame: Color | None = None
    shapes: Sequence[Shape] = ()


def draw_grid(
    tiles: Sequence[Tile],
    title: str,
    *,
    tiles_per_sample: int = 1,
    legend: Sequence[ColoredText] = (),
    scale: str = "",
) -> Canvas:
    """Draw tiles in rows, those of a sample side by side.

    Args:
        legend: Names of classes and their colors.
        scale: What a bar from cold to hot stands for; without it there is no bar.
    """
    width = max(MIN_TILE_WIDTH, *(tile.pixels.shape[1] for tile in tiles))
    height = max(tile.pixels.shape[0] + CAPTION_HEIGHT * len(tile.captions) for tile in tiles)
    columns = _choose_columns(len(tiles) // tiles_per_sample, tiles_per_sample, height, width)
    rows = math.ceil(len(tiles) / columns)
    inner_width = columns * (width + GAP) - GAP
    legend_rows = _break_legend(legend, inner_width)
    bottom = TITLE_HEIGHT + rows * (height + GAP)
    footer_height = LEGEND_ROW_HEIGHT * (len(legend_rows) + bool(scale)) + 4
    canvas = Canvas(bottom + footer_height, inner_width + 2 * MARGIN)
    short_title = shorten(title, TITLE_SIZE, inner_width)
    canvas.add(Text(MARGIN, TITLE_HEIGHT / 2, short_title, TITLE_SIZE))
    for index, tile in enumerate(tiles):
        x = MARGIN + index % columns * (width + GAP)
        y = TITLE_HEIGHT + index // columns * (height + GAP)
        _add_tile(canvas, tile, x, y, width)
    for row in legend_rows:
        _add_legend_row(canvas, row, bottom)
        bottom += LEGEND_ROW_HEIGHT
    if scale:
        _add_scale(canvas, scale, bottom)
    return canvas


def _choose_columns(samples: int, tiles_per_sample: int, height: int, width: int) -> int:
    """Choose the number of columns: the grid is about square, with few empty cells."""

    def badness(samples_per_row: int) -> float:
        rows = math.ceil(samples / samples_per_row)
        aspect_ratio = samples_per_row * tiles_per_sample * width / (rows * height)
        empty = samples_per_row * rows - samples
        return abs(math.log(aspect_ratio)) + empty / samples

    # Wide grids come first: of two equally good ones the wider has more room for a title.
    return tiles_per_sample * min(range(samples, 0, -1), key=badness)


def _add_tile(canvas: Canvas, tile: Tile, x: int, y: int, width: int) -> None:
    tile_height, tile_width = tile.pixels.shape[:2]
    left = x + (width - tile_width) // 2
    canvas.add(Raster(left, y, tile.pixels))
    if tile.frame is not None:
        frame_width = tile_width + 2 * FRAME
        frame_height = tile_height + 2 * FRAME
        canvas.add(Rectangle(left - FRAME, y - FRAME, frame_width, frame_height, tile.frame, FRAME))
    canvas.add_moved(tile.shapes, left, y)
    middle = y + tile_height + FRAME + CAPTION_HEIGHT / 2
    for caption, color in tile.captions:
        short = shorten(caption, CAPTION_SIZE, width)
        canvas.add(Text(x + width / 2, middle, short, CAPTION_SIZE, color, "center"))
        middle += CAPTION_HEIGHT


def _break_legend(legend: Sequence[ColoredText], width: int) -> list[list[ColoredText]]:
    """Distribute the entries of a legend over rows of a width."""
    rows: list[list[ColoredText]] = []
    free = 0
    for name, color in legend:
        needed = _entry_width(name)
        if not rows or needed > free:
            rows.append([])
            free = width
        rows[-1].append((name, color))
        free -= needed
    return rows


def _add_legend_row(canvas: Canvas, row: Sequence[ColoredText], top: int) -> None:
    x = MARGIN
    for name, color in row:
        short = shorten(name, CAPTION_SIZE, canvas.width - 2 * MARGIN - 20)
        canvas.add(
            Rectangle(x, top + 4, SWATCH, SWATCH, color),
            Text(x + SWATCH + 5, top + 11, short, CAPTION_SIZE),
        )
        x += _entry_width(name)


def _entry_width(name: str) -> int:
    return SWATCH + 20 + round(text_width(name, CAPTION_SIZE))


def _add_scale(canvas: Canvas, name: str, top: int) -> None:
    width = min(SCALE_WIDTH, canvas.width - 2 * MARGIN)
    colors = heat_colors(np.linspace(0, 1, width), "inferno")
    short = shorten(name, CAPTION_SIZE, canvas.width - width - 3 * MARGIN)
    canvas.add(
        Raster(MARGIN, top + 5, colors[None].repeat(SCALE_HEIGHT, 0)),
        Text(MARGIN + width + 8, top + 11, short, CAPTION_SIZE, BLACK),
    )
