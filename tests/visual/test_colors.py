"""Colors: parsing, the palette and heat maps."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

from hookline.visual.colors import (
    BLACK,
    OKABE_ITO,
    WHITE,
    class_color,
    contrasting_color,
    heat_colors,
    parse_color,
)

# How a reader without green cones sees colors (Machado 2009).
DEUTERANOPIA = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])


@pytest.mark.parametrize("value", ["red", "#ff0000", [255, 0, 0], (255, 0, 0)])
def test_a_color_is_a_name_hexadecimal_digits_or_three_bytes(value):
    assert parse_color(value) == (255, 0, 0)


@pytest.mark.parametrize("value", ["rot", [1, 2], [0, 0, 256], [0, 0, 0.5], 5, None])
def test_other_values_are_not_colors(value):
    with pytest.raises(ValueError):
        parse_color(value)


def test_twenty_classes_have_twenty_colors():
    assert len({class_color(label) for label in range(20)}) == 20


def test_color_blind_readers_can_tell_the_palette_apart():
    seen = np.array(OKABE_ITO) @ DEUTERANOPIA.T
    for index, color in enumerate(seen):
        for other in seen[:index]:
            assert np.abs(color - other).sum() > 30


def test_a_given_palette_is_used():
    assert class_color(1, [(1, 2, 3), (4, 5, 6)]) == (4, 5, 6)


def test_text_is_black_on_light_and_white_on_dark_colors():
    assert contrasting_color((240, 228, 66)) == BLACK
    assert contrasting_color((0, 0, 80)) == WHITE


def test_heat_colors_are_those_of_matplotlib():
    values = np.linspace(0, 1, 7)
    expected = matplotlib.colormaps["inferno"](values, bytes=True)[:, :3]
    assert np.array_equal(heat_colors(values, "inferno"), expected)


def test_heat_colors_are_cut_off_outside_0_to_1_and_nan_is_white():
    colors = heat_colors(np.array([0.0, 1.0, -1.0, 2.0, np.nan])).tolist()
    assert colors[2] == colors[0]
    assert colors[3] == colors[1]
    assert colors[4] == [255, 255, 255]
