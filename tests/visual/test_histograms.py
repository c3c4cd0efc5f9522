"""Charts of histograms of weights and gradients."""

from __future__ import annotations

import numpy as np

from hookline.visual.backends import render
from hookline.visual.canvas import Text
from hookline.visual.histograms import (
    BIN_WIDTH,
    BINS,
    GRADIENT_COLOR,
    MAX_ROWS,
    PLOT_HEIGHT,
    ROW_HEIGHT,
    TOP,
    WEIGHT_COLOR,
    draw_histograms,
)


def texts(canvas):
    return [shape.text for shape in canvas.shapes if isinstance(shape, Text)]


def test_bars_are_as_high_as_values_are_frequent():
    values = np.concatenate([np.zeros(100), np.ones(50)])
    canvas = draw_histograms({"layer": (values, values)}, "title")
    pixels = render(canvas)[TOP : TOP + ROW_HEIGHT]
    heading = next(shape for shape in canvas.shapes if shape.text.startswith("weights"))
    start = heading.x + 1
    first = (pixels[:, start] == WEIGHT_COLOR).all(-1).sum()
    last = (pixels[:, start + (BINS - 1) * BIN_WIDTH] == WEIGHT_COLOR).all(-1).sum()
    assert (first, last) == (PLOT_HEIGHT, PLOT_HEIGHT / 2)
    assert (pixels == GRADIENT_COLOR).all(-1).any()
    assert {"layer", "0", "1"} <= set(texts(canvas))


def test_short_names_leave_no_empty_column():
    short = draw_histograms({"a": (np.ones(3), np.ones(3))}, "title")
    long = draw_histograms({"layers.3.attention.query": (np.ones(3), np.ones(3))}, "title")
    assert short.width < long.width - 100


def test_values_that_are_not_finite_are_left_out():
    odd = np.array([np.nan, np.inf, 1.0])
    canvas = draw_histograms({"odd": (odd, odd)}, "title")
    assert (render(canvas) == WEIGHT_COLOR).all(-1).any()
    assert "none" not in texts(canvas)


def test_a_layer_without_values_has_none():
    canvas = draw_histograms({"empty": (np.zeros(0), np.full(3, np.nan))}, "title")
    assert texts(canvas).count("none") == 2


def test_of_many_layers_some_are_shown():
    layers = {f"layer.{index}": (np.ones(3), np.ones(3)) for index in range(100)}
    names = [text for text in texts(draw_histograms(layers, "title")) if "layer." in text]
    assert len(names) == MAX_ROWS
    assert (names[0], names[-1]) == ("layer.0", "layer.99")
