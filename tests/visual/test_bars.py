"""Charts of gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hookline.visual.backends import render
from hookline.visual.bars import (
    MARK_COLOR,
    MAX_COLOR,
    MAX_ROWS,
    MEAN_COLOR,
    PLOT_WIDTH,
    ROW_HEIGHT,
    TOP,
    draw_gradient_bars,
    draw_gradient_history,
)
from hookline.visual.canvas import Rectangle, Text
from hookline.visual.colors import heat_colors


def texts(canvas):
    return {shape.text: shape for shape in canvas.shapes if isinstance(shape, Text)}


def bar_lengths(canvas, color):
    """Return the lengths of the bars of a color, from top to bottom, without the legend."""
    return [
        shape.width
        for shape in canvas.shapes
        if isinstance(shape, Rectangle) and shape.color == color and shape.y >= TOP
    ]


def test_each_layer_has_a_bar_of_its_mean_and_one_of_its_largest_gradient():
    canvas = draw_gradient_bars({"first": (1e-3, 1e-2), "second": (1e-5, 1e-4)}, "flow")
    decade = PLOT_WIDTH / 4  # from 1e-6, one decade below the smallest value, to 1e-2
    assert bar_lengths(canvas, MEAN_COLOR) == pytest.approx([3 * decade, 1 * decade])
    assert bar_lengths(canvas, MAX_COLOR) == pytest.approx([4 * decade, 2 * decade])
    assert texts(canvas)["first"].y < texts(canvas)["second"].y
    assert {"1e-6", "1e-2"} <= texts(canvas).keys()


def test_the_mean_is_visible_over_the_largest_gradient():
    pixels = render(draw_gradient_bars({"layer": (1e-3, 1e-2)}, "flow"))
    row = pixels[TOP + ROW_HEIGHT // 2]
    assert (row == MEAN_COLOR).all(-1).sum() == pytest.approx(PLOT_WIDTH / 2, abs=1)
    assert (row == MAX_COLOR).all(-1).sum() == pytest.approx(PLOT_WIDTH / 2, abs=1)


def test_marked_layers_are_red():
    canvas = draw_gradient_bars({"good": (1, 2), "bad": (0, 0)}, "flow", marked={"bad"})
    assert texts(canvas)["bad"].color == MARK_COLOR
    assert texts(canvas)["good"].color != MARK_COLOR


@pytest.mark.parametrize("value", [0.0, math.inf, math.nan])
def test_a_value_without_a_logarithm_has_no_bar(value):
    canvas = draw_gradient_bars({"odd": (value, value)}, "flow")
    assert bar_lengths(canvas, MEAN_COLOR) == []
    assert bar_lengths(canvas, MAX_COLOR) == []
    assert render(canvas).shape == (canvas.height, canvas.width, 3)


def test_a_chart_of_a_thousand_layers_shows_some_and_all_marked_ones():
    flow = {f"layer.{index}": (1e-3, 1e-2) for index in range(1000)}
    canvas = draw_gradient_bars(flow, "flow", marked={"layer.501"})
    names = [text for text in texts(canvas) if text.startswith("layer.")]
    assert len(names) <= MAX_ROWS + 1
    assert "layer.501" in names
    assert canvas.height < 3000


def test_the_heat_map_has_each_value_at_its_layer_and_step():
    history = {"first": [1e-4, 1e-2], "second": [1e-3, math.nan]}
    canvas = draw_gradient_history(history, [0, 100], "over training")
    pixels = render(canvas)
    left = texts(canvas)["step 0"].x
    expected = heat_colors(np.array([[0.0, 1.0], [0.5, math.nan]]))
    for row in (0, 1):
        for column in (0, 1):
            y = TOP + ROW_HEIGHT * row + ROW_HEIGHT // 2
            x = int(left + PLOT_WIDTH * (column + 0.5) / 2)
            assert pixels[y, x].tolist() == expected[row, column].tolist(), (row, column)
    assert {"1e-4", "step 100"} <= texts(canvas).keys()


def test_a_history_without_finite_values_is_white():
    canvas = draw_gradient_history({"dead": [0.0, math.nan]}, [0, 1], "nothing")
    left = texts(canvas)["step 0"].x
    plot = render(canvas)[TOP : TOP + ROW_HEIGHT, left : left + PLOT_WIDTH]
    assert (plot == 255).all()
