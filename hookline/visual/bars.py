"""Charts of gradients: bars of one moment, and a heat map over training."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from hookline.visual.canvas import Picture, blank, shorten, text_width
from hookline.visual.colours import BLACK, WRONG, Colour, heat_colours
from hookline.visual.images import zoomed

MEAN_COLOUR, MAX_COLOUR, MARK_COLOUR = (0, 114, 178), (240, 179, 126), WRONG  # distinct for colour-blind eyes too
GRID_COLOUR = (215, 215, 215)
ROW, SIZE = 18, 11  # pixels
PLOT, NAMES = 420, 260  # widths of the plot and, at most, of the layers' names
TOP, BOTTOM, EDGE = 44, 30, 14
MAX_ROWS = 120  # layers in one chart; of more, those that are marked and an even choice of the rest


def gradient_picture(flow: Mapping[str, tuple[float, float]], title: str, marked: Collection[str] = ()) -> Picture:
    """Mean and largest |gradient| of each layer on a logarithmic scale, first layer on top; names of `marked` ones are red."""
    names = _choice(list(flow), marked)
    values = [value for name in names for value in flow[name] if _drawable(value)]
    scale = _Decades(values)
    picture, left = _frame(names, title, marked)
    bottom = TOP + ROW * len(names)
    for decade in scale.ticks():
        x = left + scale.place(10.0**decade)
        picture.fill(x, TOP, x + 1, bottom, GRID_COLOUR)
        picture.write(x, bottom + 12, f"1e{decade}", 10, align="center")
    for row, name in enumerate(names):
        mean, largest = flow[name]
        top = TOP + ROW * row
        if _drawable(largest):
            picture.fill(left, top + 2, left + scale.place(largest), top + ROW - 2, MAX_COLOUR)
        if _drawable(mean):
            picture.fill(left, top + 5, left + scale.place(mean), top + ROW - 5, MEAN_COLOUR)
    _legend(picture, left, (("mean |gradient|", MEAN_COLOUR), ("largest", MAX_COLOUR)))
    return picture


def history_picture(history: Mapping[str, Sequence[float]], steps: Sequence[int], title: str, what: str = "mean |gradient|") -> Picture:
    """A number for each layer over training, as a heat map on a logarithmic scale; where there was none it is white."""
    names = _choice(list(history), ())
    table = np.array([history[name] for name in names], dtype=float)
    logs = np.log10(np.where(np.isfinite(table) & (table > 0), table, np.nan))
    finite = logs[np.isfinite(logs)]
    low, high = (math.floor(finite.min()), math.ceil(finite.max())) if finite.size else (-1, 0)
    picture, left = _frame(names, title, ())
    columns = np.minimum(np.arange(PLOT) * len(steps) // PLOT, len(steps) - 1)
    cells = heat_colours((logs - low) / max(high - low, 1))[:, columns]
    picture.paste(cells.repeat(ROW, 0), left, TOP)
    bottom = TOP + ROW * len(names) + 12
    picture.write(left, bottom, f"step {steps[0]}", 10)
    picture.write(left + PLOT, bottom, f"step {steps[-1]}", 10, align="right")
    _colour_bar(picture, left, low, max(high, low + 1), what)
    return picture


class _Decades:
    """Places on a logarithmic axis from one decade below the smallest value to the one above the largest."""

    def __init__(self, values: Sequence[float]) -> None:
        self.low = math.floor(math.log10(min(values))) if values else -1
        self.high = max(math.ceil(math.log10(max(values))) if values else 0, self.low + 1)
        if values and math.log10(min(values)) == self.low:
            self.low -= 1  # or the smallest bar would have no length

    def place(self, value: float) -> float:
        return PLOT * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> range:
        return range(self.low, self.high + 1, max(1, math.ceil((self.high - self.low) / 10)))


def _frame(names: Sequence[str], title: str, marked: Collection[str]) -> tuple[Picture, int]:
    """An empty chart with the layers' names, and where its plot begins."""
    left = EDGE + 6 + round(min(NAMES, max((text_width(name, SIZE) for name in names), default=0)))
    picture = blank(TOP + ROW * len(names) + BOTTOM, left + PLOT + 2 * EDGE)
    picture.write(EDGE, 14, shorten(title, 13, picture.pixels.shape[1] - 2 * EDGE), 13)
    for row, name in enumerate(names):
        colour: Colour = MARK_COLOUR if name in marked else BLACK
        picture.write(left - 6, TOP + ROW * (row + 0.5), shorten(name, SIZE, NAMES), SIZE, colour, "right")
    return picture, left


def _legend(picture: Picture, left: int, entries: Sequence[tuple[str, Colour]]) -> None:
    for text, colour in entries:
        picture.fill(left, 29, left + 12, 38, colour)
        picture.write(left + 16, 34, text, 10)
        left += 30 + round(text_width(text, 10))


def _colour_bar(picture: Picture, left: int, low: int, high: int, what: str) -> None:
    """The scale of a heat map, above it."""
    start = left + round(text_width(f"1e{low}", 10)) + 6
    picture.write(left, 34, f"1e{low}", 10)
    picture.paste(zoomed(heat_colours(np.linspace(0, 1, 140))[None], 1).repeat(10, 0), start, 29)
    picture.write(start + 146, 34, f"1e{high}   {what}", 10)


def _choice(names: list[str], marked: Collection[str]) -> list[str]:
    if len(names) <= MAX_ROWS:
        return names
    kept = {names[index] for index in np.linspace(0, len(names) - 1, MAX_ROWS).round().astype(int)}
    return [name for name in names if name in kept or name in marked][: 2 * MAX_ROWS]


def _drawable(value: float) -> bool:
    """A logarithmic scale has no place for 0, infinity and NaN."""
    return 0 < value < math.inf
