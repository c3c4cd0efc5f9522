"""The bar chart of gradients."""

from __future__ import annotations

import io
import math
import warnings

import pytest
from matplotlib.colors import to_hex

from hookline.visual import gradient_figure
from hookline.visual.bars import MARK_COLOUR


def test_each_layer_has_a_bar_of_its_mean_and_one_of_its_largest_gradient_first_layer_on_top():
    axes = gradient_figure({"first": (1e-3, 1e-2), "second": (1e-5, 1e-4)}, "flow").axes[0]
    largest, mean = axes.containers
    assert [bar.get_width() for bar in largest] == [1e-2, 1e-4]
    assert [bar.get_width() for bar in mean] == [1e-3, 1e-5]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["first", "second"]
    bottom, top = axes.get_ylim()
    assert bottom > top


def test_marked_layers_are_red():
    labels = gradient_figure({"good": (1, 2), "bad": (0, 0)}, "flow", marked={"bad"}).axes[0].get_yticklabels()
    assert [to_hex(label.get_color()) == MARK_COLOUR for label in labels] == [False, True]


@pytest.mark.parametrize("value", [0.0, math.inf, math.nan])
def test_values_without_a_place_on_the_scale_are_left_out_in_silence(value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradient_figure({"odd": (value, value)}, "flow").savefig(io.BytesIO(), format="png")
