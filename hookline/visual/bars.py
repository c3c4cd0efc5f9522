"""Charts of gradients: a bar chart of one step, and a heat map of all steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from hookline.visual.canvas import Canvas, Raster, Rectangle, Text
from hookline.visual.colors import BLACK, WRONG, heat_colors
from hookline.visual.text import shorten, text_width

# Colors that color-blind readers can tell apart.
MEAN_COLOR = (0, 114, 178)
MAX_COLOR = (240, 179, 126)
MARK_COLOR = WRONG
GRID_COLOR = (215, 215, 215)

# Lengths in pixels.
ROW_HEIGHT = 18
PLOT_WIDTH = 420
MAX_NAME_WIDTH = 260
TOP = 44
BOTTOM = 30
MARGIN = 14
TITLE_SIZE = 13
NAME_SIZE = 11
TICK_SIZE = 10
COLOR_BAR_WIDTH = 140

MAX_ROWS = 120  # layers in one chart
MAX_TICKS = 10


def draw_gradient_bars(
    flow: Mapping[str, tuple[float, float]], title: str, marked: Collection[str] = ()
) -> Canvas:
    """Draw the mean and the largest |gradient| of each layer on a logarithmic scale.

    Args:
        flow: Mean and largest |gradient| by layer.
        marked: Layers whose names are red.
    """
    names = select_rows(list(flow), marked)
    axis = LogAxis([value for name in names for value in flow[name]])
    canvas, left = _draw_rows(names, title, marked)
    bottom = TOP + ROW_HEIGHT * len(names)
    for exponent in axis.ticks():
        x = left + axis.position(10.0**exponent)
        canvas.add(
            Rectangle(x, TOP, 1, bottom - TOP, GRID_COLOR),
            Text(x, bottom + 12, f"1e{exponent}", TICK_SIZE, align="center"),
        )
    for row, name in enumerate(names):
        mean, largest = flow[name]
        top = TOP + ROW_HEIGHT * row
        if _is_positive(largest):
            length = axis.position(largest)
            canvas.add(Rectangle(left, top + 2, length, ROW_HEIGHT - 4, MAX_COLOR))
        if _is_positive(mean):
            length = axis.position(mean)
            canvas.add(Rectangle(left, top + 5, length, ROW_HEIGHT - 10, MEAN_COLOR))
    for label, color in (("mean |gradient|", MEAN_COLOR), ("largest |gradient|", MAX_COLOR)):
        canvas.add(
            Rectangle(left, 29, 12, 9, color),
            Text(left + 16, 34, label, TICK_SIZE),
        )
        left += 30 + round(text_width(label, TICK_SIZE))
    return canvas


def draw_gradient_history(
    history: Mapping[str, Sequence[float]],
    steps: Sequence[int],
    title: str,
    quantity: str = "mean |gradient|",
) -> Canvas:
    """Draw a quantity of each layer over training, as a heat map on a logarithmic scale.

    Values that are 0 or not finite are white.
    """
    names = select_rows(list(history))
    axis = LogAxis([value for name in names for value in history[name]], from_zero=False)
    table = np.array([history[name] for name in names], dtype=float)
    table = np.where(np.isfinite(table) & (table > 0), table, np.nan)
    colors = heat_colors((np.log10(table) - axis.low) / (axis.high - axis.low))
    step_of_column = np.arange(PLOT_WIDTH) * len(steps) // PLOT_WIDTH
    canvas, left = _draw_rows(names, title)
    bottom = TOP + ROW_HEIGHT * len(names) + 12
    canvas.add(
        Raster(left, TOP, colors[:, step_of_column].repeat(ROW_HEIGHT, 0)),
        Text(left, bottom, f"step {steps[0]}", TICK_SIZE),
        Text(left + PLOT_WIDTH, bottom, f"step {steps[-1]}", TICK_SIZE, align="right"),
    )
    _add_color_bar(canvas, left, axis, quantity)
    return canvas


class LogAxis:
    """Positions on a logarithmic axis over whole powers of ten.

    Args:
        values: Values that the axis has room for; 0, infinity and NaN have no position on it.
        from_zero: Whether the axis begins below the smallest value, so that its bar has a length.
    """

    def __init__(self, values: Sequence[float], from_zero: bool = True) -> None:
        logs = [math.log10(value) for value in values if _is_positive(value)] or [-1.0]
        self.low = math.floor(min(logs))
        if from_zero and self.low == min(logs):
            self.low -= 1
        self.high = max(math.ceil(max(logs)), self.low + 1)

    def position(self, value: float) -> float:
        """Return the distance of a value from the start of the axis in pixels."""
        return PLOT_WIDTH * (math.log10(value) - self.low) / (self.high - self.low)

    def ticks(self) -> range:
        """Return the exponents of the ticks."""
        return range(self.low, self.high + 1, math.ceil((self.high - self.low) / MAX_TICKS))


def select_rows(names: list[str], marked: Collection[str] = (), limit: int = MAX_ROWS) -> list[str]:
    """Return all names, or `limit` of them at even distances and as many marked ones."""
    if len(names) <= limit:
        return names
    indices = np.linspace(0, len(names) - 1, limit).round().astype(int)
    selected = {names[index] for index in indices}
    kept = [name for name in names if name in selected or name in marked]
    return kept[: 2 * limit]


def _draw_rows(
    names: Sequence[str], title: str, marked: Collection[str] = ()
) -> tuple[Canvas, int]:
    """Draw the title and layer names of a chart; also return where its plot begins."""
    widths = [text_width(name, NAME_SIZE) for name in names]
    left = MARGIN + 6 + round(min(MAX_NAME_WIDTH, max(widths, default=0)))
    canvas = Canvas(TOP + ROW_HEIGHT * len(names) + BOTTOM, left + PLOT_WIDTH + 2 * MARGIN)
    short_title = shorten(title, TITLE_SIZE, canvas.width - 2 * MARGIN)
    canvas.add(Text(MARGIN, 14, short_title, TITLE_SIZE))
    for row, name in enumerate(names):
        middle = TOP + ROW_HEIGHT * (row + 0.5)
        color = MARK_COLOR if name in marked else BLACK
        short_name = shorten(name, NAME_SIZE, MAX_NAME_WIDTH)
        canvas.add(Text(left - 6, middle, short_name, NAME_SIZE, color, "right"))
    return canvas, left


def _add_color_bar(canvas: Canvas, left: int, axis: LogAxis, quantity: str) -> None:
    """Add the scale of a heat map, above it."""
    lowest = f"1e{axis.low}"
    start = left + round(text_width(lowest, TICK_SIZE)) + 6
    colors = heat_colors(np.linspace(0, 1, COLOR_BAR_WIDTH))
    canvas.add(
        Text(left, 34, lowest, TICK_SIZE),
        Raster(start, 29, colors[None].repeat(10, 0)),
        Text(start + COLOR_BAR_WIDTH + 6, 34, f"1e{axis.high}   {quantity}", TICK_SIZE),
    )


def _is_positive(value: float) -> bool:
    """Return whether a value is positive and finite, and so has a logarithm."""
    return 0 < value < math.inf
