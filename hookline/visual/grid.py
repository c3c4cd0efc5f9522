"""A grid of images with captions, below a title and above a legend or a color scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hookline.visual.canvas import Canvas, Raster, Rectangle, Shape, Text
from hookline.visual.colors import Color, heat_colors
from hookline.visual.text import shorten, text_width

# Lengths in pixels.
GAP = 8
MARGIN = 10
TITLE_HEIGHT = 26
TITLE_SIZE = 12
CAPTION_HEIGHT = 16
CAPTION_SIZE = 11
MIN_COLUMN_WIDTH = 96
MAX_CAPTION_WIDTH = 168  # that widens a column; a wider caption is shortened
MAX_TEXT_WIDTH = 540  # of a title or scale that widens a grid of few tiles
LEAD_GAP = 24
FRAME = 3
LEGEND_ROW_HEIGHT = 24
SWATCH = 14
SCALE_WIDTH = 120
SCALE_HEIGHT = 12
SCALE_GAP = 6

ColoredText = tuple[str, Color]


@dataclass
class Tile:
    """An image with shapes over it, lines of text below it, and perhaps a frame around it."""

    pixels: np.ndarray
    captions: Sequence[ColoredText] = ()
    frame: Color | None = None
    shapes: Sequence[Shape] = ()


@dataclass(frozen=True)
class ColorScale:
    """A bar of the colors of a heat map, with its meaning and the names of its ends."""

    meaning: str
    low: str = "low"
    high: str = "high"
    colormap: str = "inferno"

    def width(self) -> float:
        texts = (self.low, self.high, self.meaning)
        return (
            SCALE_WIDTH + 5 * SCALE_GAP + 2 + sum(text_width(text, CAPTION_SIZE) for text in texts)
        )


def draw_grid(
    tiles: Sequence[Tile],
    title: str,
    *,
    tiles_per_sample: int = 1,
    lead: Tile | None = None,
    legend: Sequence[ColoredText] = (),
    scale: ColorScale | None = None,
) -> Canvas:
    """Draw tiles in rows, those of a sample side by side.

    Args:
        lead: A tile on the left of the others.
        legend: Names of classes and their colors.
        scale: The meaning of the colors of heat maps.
    """
    width = _column_width(tiles)
    height = max(_tile_height(tile) for tile in tiles)
    columns = _choose_columns(len(tiles) // tiles_per_sample, tiles_per_sample, height, width)
    rows = math.ceil(len(tiles) / columns)
    left = MARGIN
    bottom = TITLE_HEIGHT + rows * (height + GAP)
    if lead is not None:
        left += _column_width([lead]) + LEAD_GAP
        bottom = max(bottom, TITLE_HEIGHT + _tile_height(lead) + GAP)
    right = left + columns * (width + GAP) - GAP
    canvas = Canvas(bottom, max(right + MARGIN, _text_room(title, scale)))
    short_title = shorten(title, TITLE_SIZE, canvas.width - 2 * MARGIN)
    canvas.add(Text(MARGIN, TITLE_HEIGHT / 2, short_title, TITLE_SIZE))
    if lead is not None:
        _add_tile(canvas, lead, MARGIN, TITLE_HEIGHT, _column_width([lead]))
    for index, tile in enumerate(tiles):
        x = left + index % columns * (width + GAP)
        y = TITLE_HEIGHT + index // columns * (height + GAP)
        _add_tile(canvas, tile, x, y, width)
    _append_footer(canvas, legend, scale)
    return canvas


def _text_room(title: str, scale: ColorScale | None) -> int:
    """Return the width of a canvas with room for the texts above and below the tiles."""
    width = text_width(title, TITLE_SIZE)
    if scale is not None:
        width = max(width, scale.width())
    return math.ceil(min(MAX_TEXT_WIDTH, width)) + 2 * MARGIN


def _column_width(tiles: Sequence[Tile]) -> int:
    width = MIN_COLUMN_WIDTH
    for tile in tiles:
        width = max(width, tile.pixels.shape[1])
        for caption, _ in tile.captions:
            caption_width = math.ceil(text_width(caption, CAPTION_SIZE))
            width = max(width, min(MAX_CAPTION_WIDTH, caption_width))
    return width


def _tile_height(tile: Tile) -> int:
    return tile.pixels.shape[0] + CAPTION_HEIGHT * len(tile.captions)


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


def _append_footer(canvas: Canvas, legend: Sequence[ColoredText], scale: ColorScale | None) -> None:
    """Make a canvas higher, and add a legend and a color scale below the tiles."""
    for row in _break_legend(legend, canvas.width - 2 * MARGIN):
        _add_legend_row(canvas, row, canvas.height)
        canvas.height += LEGEND_ROW_HEIGHT
    if scale is not None:
        _add_scale(canvas, scale, canvas.height)
        canvas.height += LEGEND_ROW_HEIGHT
    canvas.height += 4


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


def _add_scale(canvas: Canvas, scale: ColorScale, top: int) -> None:
    middle = top + 5 + SCALE_HEIGHT / 2
    x = MARGIN
    canvas.add(Text(x, middle, scale.low, CAPTION_SIZE))
    x += math.ceil(text_width(scale.low, CAPTION_SIZE)) + SCALE_GAP
    colors = heat_colors(np.linspace(0, 1, SCALE_WIDTH), scale.colormap)
    canvas.add(Raster(x, top + 5, colors[None].repeat(SCALE_HEIGHT, 0)))
    x += SCALE_WIDTH + SCALE_GAP
    canvas.add(Text(x, middle, scale.high, CAPTION_SIZE))
    x += math.ceil(text_width(scale.high, CAPTION_SIZE)) + 3 * SCALE_GAP
    meaning = shorten(scale.meaning, CAPTION_SIZE, canvas.width - MARGIN - x)
    canvas.add(Text(x, middle, meaning, CAPTION_SIZE))
