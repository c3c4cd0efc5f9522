"""Histograms of weights and gradients, one row for each layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hookline.visual.canvas import Picture, blank, shorten
from hookline.visual.colours import Colour

Values = tuple[np.ndarray, np.ndarray]

WEIGHTS, GRADIENTS = (0, 114, 178), (213, 94, 0)
BINS, BAR = 48, 4  # how many, and the width of each in pixels
ROW, TOP, NAMES, EDGE = 56, 44, 170, 14
MAX_ROWS = 16  # of more layers an even choice is shown


def histogram_picture(layers: Mapping[str, Values], title: str) -> Picture:
    """For each layer the distribution of its weights and, beside it, of its gradients, each with its range below."""
    names = list(layers)
    if len(names) > MAX_ROWS:
        names = [names[index] for index in np.linspace(0, len(names) - 1, MAX_ROWS).round().astype(int)]
    picture = blank(TOP + ROW * len(names) + 8, NAMES + 2 * BINS * BAR + 4 * EDGE)
    picture.write(EDGE, 14, shorten(title, 13, picture.pixels.shape[1] - 2 * EDGE), 13)
    columns = ((NAMES + EDGE, "weights", WEIGHTS), (NAMES + BINS * BAR + 3 * EDGE, "gradients", GRADIENTS))
    for left, heading, colour in columns:
        picture.write(left, 34, heading, 11, colour)
    for row, name in enumerate(names):
        top = TOP + ROW * row
        picture.write(NAMES, top + 18, shorten(name, 11, NAMES - EDGE), 11, align="right")
        for (left, _, colour), values in zip(columns, layers[name], strict=True):
            _draw(picture, left, top, values, colour)
    return picture


def _draw(picture: Picture, left: int, top: int, values: np.ndarray, colour: Colour) -> None:
    values = values[np.isfinite(values)]
    bottom, height = top + 34, 32
    picture.fill(left, bottom, left + BINS * BAR, bottom + 1, (170, 170, 170))
    if not values.size:
        picture.write(left, bottom + 8, "none", 9)
        return
    counts, edges = np.histogram(values.astype(np.float64), BINS)
    heights = np.repeat((height * counts / counts.max()).round(), BAR)
    heights[BAR - 1 :: BAR] = 0  # a gap after each bar
    bars = np.arange(height)[:, None] >= height - heights
    picture.pixels[bottom - height : bottom, left : left + BINS * BAR][bars] = colour
    picture.write(left, bottom + 9, f"{edges[0]:.2g}", 9)
    picture.write(left + BINS * BAR, bottom + 9, f"{edges[-1]:.2g}", 9, align="right")
