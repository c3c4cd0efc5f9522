"""A chart of histograms of weights and gradients, one row per layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hookline.visual.bars import select_rows
from hookline.visual.canvas import Canvas, Rectangle, Text
from hookline.visual.colors import Color
from hookline.visual.text import shorten, text_width

WEIGHT_COLOR = (0, 114, 178)
GRADIENT_COLOR = (213, 94, 0)
BASELINE_COLOR = (170, 170, 170)

BINS = 48
MAX_ROWS = 16  # layers in one chart

# Lengths in pixels.
BIN_WIDTH = 4
PLOT_WIDTH = BINS * BIN_WIDTH
PLOT_HEIGHT = 32
ROW_HEIGHT = 56
TOP = 44
MAX_NAME_WIDTH = 170
MARGIN = 14
TITLE_SIZE = 13
NAME_SIZE = 11
TICK_SIZE = 9


def draw_histograms(layers: Mapping[str, tuple[np.ndarray, np.ndarray]], title: str) -> Canvas:
    """Draw the distributions of the weights and gradients of each layer.

    Args:
        layers: Weights and gradients by layer.
    """
    names = select_rows(list(layers), limit=MAX_ROWS)
    widest = max((text_width(name, NAME_SIZE) for name in names), default=0)
    names_end = MARGIN + round(min(MAX_NAME_WIDTH, widest))
    weights_x = names_end + MARGIN
    gradients_x = weights_x + PLOT_WIDTH + 2 * MARGIN
    canvas = Canvas(TOP + ROW_HEIGHT * len(names) + 8, gradients_x + PLOT_WIDTH + MARGIN)
    short_title = shorten(title, TITLE_SIZE, canvas.width - 2 * MARGIN)
    canvas.add(
        Text(MARGIN, 14, short_title, TITLE_SIZE),
        Text(weights_x, 34, "weights (values per bin)", NAME_SIZE, WEIGHT_COLOR),
        Text(gradients_x, 34, "gradients (values per bin)", NAME_SIZE, GRADIENT_COLOR),
    )
    for row, name in enumerate(names):
        top = TOP + ROW_HEIGHT * row
        short_name = shorten(name, NAME_SIZE, MAX_NAME_WIDTH)
        canvas.add(Text(names_end, top + 18, short_name, NAME_SIZE, align="right"))
        weights, gradients = layers[name]
        _add_histogram(canvas, weights_x, top, weights, WEIGHT_COLOR)
        _add_histogram(canvas, gradients_x, top, gradients, GRADIENT_COLOR)
    return canvas


def _add_histogram(canvas: Canvas, x: int, y: int, values: np.ndarray, color: Color) -> None:
    """Add a histogram of the finite values with its range below it."""
    values = values[np.isfinite(values)]
    baseline = y + PLOT_HEIGHT + 2
    canvas.add(Rectangle(x, baseline, PLOT_WIDTH, 1, BASELINE_COLOR))
    if not values.size:
        canvas.add(Text(x, baseline + 8, "none", TICK_SIZE))
        return
    counts, edges = np.histogram(values.astype(np.float64), BINS)
    heights = (PLOT_HEIGHT * counts / counts.max()).round()
    for index, height in enumerate(heights):
        left = x + index * BIN_WIDTH
        canvas.add(Rectangle(left, baseline - height, BIN_WIDTH - 1, height, color))
    canvas.add(
        Text(x, baseline + 9, f"{edges[0]:.2g}", TICK_SIZE),
        Text(x + PLOT_WIDTH, baseline + 9, f"{edges[-1]:.2g}", TICK_SIZE, align="right"),
    )
