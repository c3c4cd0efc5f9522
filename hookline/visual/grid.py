"""Tiles with captions in a grid, below a title and above a legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from hookline.visual.canvas import Picture, Text, blank, shorten, text_width
from hookline.visual.colours import BLACK, Colour, heat_colours

GAP, EDGE = 8, 10
TITLE, LINE, SIZE = 26, 16, 11
LEAST = 96  # width of a tile, so that its caption has room
LEGEND = 24
FRAME = 3


@dataclass
class Tile:
    """An image with lines below it, perhaps texts on it and a frame around it."""

    pixels: np.ndarray
    captions: Sequence[tuple[str, Colour]] = ()
    frame: Colour | None = None
    texts: Sequence[Text] = field(default_factory=list)


def grid(tiles: Sequence[Tile], title: str, *, per_sample: int = 1, legend: Sequence[tuple[str, Colour]] = (), scale: str = "") -> Picture:
    """All tiles, those of one sample side by side; `scale` names what a bar from cold to hot below stands for."""
    height = max(tile.pixels.shape[0] for tile in tiles)
    width = max(LEAST, max(tile.pixels.shape[1] for tile in tiles))
    lines = max(len(tile.captions) for tile in tiles)
    columns, rows = _shape(len(tiles) // per_sample, per_sample, height + LINE * lines, width)
    step_x, step_y = width + GAP, height + LINE * lines + GAP
    rows_of_legend = _legend_rows(legend, columns * step_x - GAP)
    bottom = TITLE + rows * step_y
    picture = blank(bottom + LEGEND * (rows_of_legend + bool(scale)) + 4, columns * step_x - GAP + 2 * EDGE)
    picture.write(EDGE, TITLE / 2, shorten(title, 12, picture.pixels.shape[1] - 2 * EDGE), 12)
    for index, tile in enumerate(tiles):
        _place(picture, tile, EDGE + index % columns * step_x, TITLE + index // columns * step_y, width)
    _legend(picture, legend, bottom)
    if scale:
        _scale(picture, scale, bottom + LEGEND * rows_of_legend)
    return picture


def _shape(samples: int, per_sample: int, height: int, width: int) -> tuple[int, int]:
    """Columns and rows of tiles that make the picture about as wide as it is high, with few places left empty."""

    def blemish(across: int) -> float:
        rows = math.ceil(samples / across)
        return abs(math.log(across * per_sample * width / (rows * height))) + (across * rows - samples) / samples

    across = min(range(samples, 0, -1), key=blemish)  # of equals the wider one: a title has more room
    return across * per_sample, math.ceil(samples / across)


def _place(picture: Picture, tile: Tile, left: int, top: int, width: int) -> None:
    height = tile.pixels.shape[0]
    shift = left + (width - tile.pixels.shape[1]) // 2
    picture.paste(tile.pixels, shift, top)
    if tile.frame is not None:
        picture.outline(shift - FRAME, top - FRAME, shift + tile.pixels.shape[1] + FRAME, top + height + FRAME, tile.frame, FRAME)
    for text in tile.texts:
        picture.write(text.x + shift, text.y + top, text.text, text.size, text.colour, text.align)
    for line, (text_line, colour) in enumerate(tile.captions):
        y = top + height + LINE * line + LINE / 2 + FRAME
        picture.write(left + width / 2, y, shorten(text_line, SIZE, width), SIZE, colour, "center")


def _entry_width(name: str) -> int:
    return 34 + round(text_width(name, SIZE))


def _legend_rows(legend: Sequence[tuple[str, Colour]], width: int) -> int:
    if not legend:
        return 0
    rows, x = 1, 0
    for name, _ in legend:
        if x and x + _entry_width(name) > width:
            rows, x = rows + 1, 0
        x += _entry_width(name)
    return rows


def _legend(picture: Picture, legend: Sequence[tuple[str, Colour]], top: int) -> None:
    x, width = 0, picture.pixels.shape[1] - 2 * EDGE
    for name, colour in legend:
        if x and x + _entry_width(name) > width:
            x, top = 0, top + LEGEND
        picture.fill(EDGE + x, top + 4, EDGE + x + 14, top + 18, colour)
        picture.write(EDGE + x + 19, top + 11, shorten(name, SIZE, width - 20), SIZE)
        x += _entry_width(name)


def _scale(picture: Picture, name: str, top: int) -> None:
    width = min(120, picture.pixels.shape[1] - 2 * EDGE)
    picture.paste(heat_colours(np.linspace(0, 1, width), "inferno")[None].repeat(12, 0), EDGE, top + 5)
    picture.write(EDGE + width + 8, top + 11, shorten(name, SIZE, picture.pixels.shape[1] - width - 3 * EDGE), SIZE, BLACK)
