"""Charts of gradients: bars of one moment, and a heat map over training."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hookline.visual.bars import MARK_COLOUR, MAX_COLOUR, MAX_ROWS, MEAN_COLOUR, PLOT, ROW, TOP, gradient_picture, history_picture
from hookline.visual.colours import heat_colours
from hookline.visual.render import render


def lengths(picture, row, colour):
    """How many pixels of a colour the row of a layer has in its middle, or at the edge where only the wide bars are."""
    return sum((picture.pixels[TOP + ROW * row + ROW // 2] == colour).all(-1))


def test_each_layer_has_a_bar_of_its_mean_and_one_of_its_largest_gradient_first_layer_on_top():
    picture = gradient_picture({"first": (1e-3, 1e-2), "second": (1e-5, 1e-4)}, "flow")
    decade = PLOT / 4  # from 1e-6, so that the smallest bar has a length, to 1e-2
    assert [lengths(picture, row, MEAN_COLOUR) for row in (0, 1)] == pytest.approx([3 * decade, 1 * decade], abs=1)
    edge = [sum((picture.pixels[TOP + ROW * row + 3] == MAX_COLOUR).all(-1)) for row in (0, 1)]
    assert edge == pytest.approx([4 * decade, 2 * decade], abs=1)
    places = {text.text: text.y for text in picture.texts}
    assert places["first"] < places["second"]
    assert {"1e-6", "1e-2"} <= places.keys()


def test_marked_layers_are_red():
    texts = {text.text: text for text in gradient_picture({"good": (1, 2), "bad": (0, 0)}, "flow", marked={"bad"}).texts}
    assert texts["bad"].colour == MARK_COLOUR != texts["good"].colour


@pytest.mark.parametrize("value", [0.0, math.inf, math.nan])
def test_values_without_a_place_on_the_scale_are_left_out(value):
    picture = gradient_picture({"odd": (value, value)}, "flow")
    assert lengths(picture, 0, MEAN_COLOUR) == lengths(picture, 0, MAX_COLOUR) == 0
    assert render(picture).shape == picture.pixels.shape


def test_a_model_of_a_thousand_layers_gets_a_picture_of_a_sane_size_and_marked_layers_stay():
    flow = {f"layer.{index}": (1e-3, 1e-2) for index in range(1000)}
    picture = gradient_picture(flow, "flow", marked={"layer.501"})
    names = [text.text for text in picture.texts if text.text.startswith("layer.")]
    assert len(names) <= MAX_ROWS + 1
    assert "layer.501" in names
    assert picture.pixels.shape[0] < 3000


def test_the_heat_map_over_training_has_each_value_at_its_layer_and_time():
    history = {"first": [1e-4, 1e-2], "second": [1e-3, math.nan]}
    picture = history_picture(history, [0, 100], "over training")
    left = next(text.x for text in picture.texts if text.text == "step 0")
    expected = heat_colours(np.array([[0.0, 1.0], [0.5, math.nan]]))
    for row in (0, 1):
        for column in (0, 1):
            pixel = picture.pixels[TOP + ROW * row + ROW // 2, int(left + PLOT * (column + 0.5) / 2)]
            assert pixel.tolist() == expected[row, column].tolist(), (row, column)
    assert {"1e-4", "step 100"} <= {text.text for text in picture.texts}


def test_a_history_without_any_finite_value_is_drawn_empty():
    assert render(history_picture({"dead": [0.0, math.nan]}, [0, 1], "nothing")).shape[2] == 3
