"""Heat maps: each value at its place, in its color."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

from hookline.visual.backends import render
from hookline.visual.canvas import Raster, Text
from hookline.visual.colors import heat_colors
from hookline.visual.heat_maps import (
    MAX_TILE_SIZE,
    MIN_TILE_SIZE,
    as_maps,
    describe_range,
    draw_feature_maps,
    draw_map,
    name_maps,
    overlay,
)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((5, 4, 3), (2, 4, 3)),  # channels of an image
        ((5, 7, 4, 3), (2, 4, 3)),  # of a volume
        ((5, 9), (1, 2, 9)),  # a sequence
        ((9,), (1, 1, 9)),
        ((), (1, 1, 1)),
    ],
)
def test_outputs_of_any_number_of_dimensions_become_maps(shape, expected):
    assert as_maps(np.zeros(shape), limit=2).shape == expected


def test_the_middle_slice_of_a_volume_is_shown():
    volume = np.random.default_rng(0).normal(size=(2, 5, 4, 3))
    assert np.array_equal(as_maps(volume, limit=8), volume[:, 2])


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ((5, 4, 3), ["channel 0", "channel 1"]),
        ((5, 7, 4, 3), ["channel 0", "channel 1"]),
        ((1, 4, 3), ["channel 0"]),
        ((5, 9), ["rows 0 to 1"]),
        ((9,), ["all values"]),
    ],
)
def test_maps_have_the_numbers_of_their_channels(shape, names):
    assert name_maps(np.zeros(shape), limit=2) == names


def colors_of(values):
    """Return the colors of viridis as a set of tuples."""
    return set(map(tuple, heat_colors(np.asarray(values, dtype=float)).tolist()))


def colors_in(pixels):
    return set(map(tuple, pixels.reshape(-1, 3).tolist()))


def test_a_small_map_is_enlarged_without_mixing_its_values():
    pixels = draw_map(np.array([[0.0, 1.0], [2.0, 4.0]]))
    half = MIN_TILE_SIZE // 2
    assert pixels.shape == (MIN_TILE_SIZE, MIN_TILE_SIZE, 3)
    assert colors_in(pixels[:half, :half]) == colors_of([0.0])
    assert colors_in(pixels[:half, half:]) == colors_of([0.25])
    assert colors_in(pixels[half:, half:]) == colors_of([1.0])


@pytest.mark.parametrize("height", [1, 2, 7, 8, 50, 96, 97, 300, 1000])
@pytest.mark.parametrize("width", [1, 3, 14, 64, 224, 2000])
def test_a_tile_has_at_least_96_pixels_and_not_too_many(height, width):
    shape = draw_map(np.zeros((height, width))).shape[:2]
    assert min(shape) >= 96
    assert max(shape) <= MAX_TILE_SIZE


@pytest.mark.parametrize("shape", [(7, 7), (8, 16), (96, 160), (500, 1000)])
def test_a_map_keeps_its_proportions(shape):
    height, width = draw_map(np.zeros(shape)).shape[:2]
    assert width / height == pytest.approx(shape[1] / shape[0], rel=0.02)


def test_a_large_map_is_shrunk_by_averaging():
    values = np.zeros((2 * MAX_TILE_SIZE, 2 * MAX_TILE_SIZE))
    values[:, ::2] = 1.0
    pixels = draw_map(values)
    assert pixels.shape == (MAX_TILE_SIZE, MAX_TILE_SIZE, 3)
    assert colors_in(pixels) == colors_of([0.5])


def test_a_constant_map_is_dark():
    assert colors_in(draw_map(np.full((2, 2), 3.0))) == colors_of([0.0])


def test_values_that_are_not_finite_stay_white():
    values = np.array([[np.inf, 1.0], [0.0, -np.inf]])
    pixels = draw_map(values)
    assert colors_in(pixels[0, :1]) == colors_in(pixels[-1, -1:]) == {(255, 255, 255)}
    assert colors_in(pixels[0, -1:]) == colors_of([1.0])
    assert colors_in(pixels[-1, :1]) == colors_of([0.0])
    assert colors_in(draw_map(np.full((2, 2), np.nan))) == {(255, 255, 255)}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([-0.25, 1.5], "-0.25 to 1.5"),
        ([np.nan, 1.0, np.inf], "1 to 1, 2 not finite"),
        ([np.nan], "no finite values"),
    ],
)
def test_the_range_of_a_map_is_described(values, text):
    assert describe_range(np.array(values)) == text


def texts(canvas):
    return [shape.text for shape in canvas.shapes if isinstance(shape, Text)]


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
def test_feature_maps_are_drawn_with_numbers_ranges_a_scale_and_the_input(backend):
    maps = np.array([[[0.0, 1.0], [1.0, 0.0]], [[5.0, 5.0], [5.0, 7.0]]])
    image = np.full((8, 8, 3), 77, dtype=np.uint8)
    canvas = draw_feature_maps(maps, "corners", ["channel 0", "channel 1"], image)
    expected = {"corners", "input", "channel 0", "0 to 1", "channel 1", "5 to 7"}
    assert expected | {"lowest", "highest"} <= set(texts(canvas))
    source, first, second, bar = [shape for shape in canvas.shapes if isinstance(shape, Raster)]
    assert (source.pixels == 77).all()
    assert source.x + source.pixels.shape[1] < first.x
    low, high = matplotlib.colormaps["viridis"]([0.0, 1.0], bytes=True)[:, :3]
    assert np.array_equal(bar.pixels[0, [0, -1]], [low, high])
    pixels = render(canvas, backend)
    for raster, corners in ((first, [low, high, high, low]), (second, [low, low, low, high])):
        left = round(raster.x) + MIN_TILE_SIZE // 4
        top = round(raster.y) + MIN_TILE_SIZE // 4
        half = MIN_TILE_SIZE // 2
        found = [pixels[top + dy, left + dx] for dy in (0, half) for dx in (0, half)]
        assert np.array_equal(found, corners)


def test_maps_without_names_are_numbered():
    assert {"0", "1", "2"} <= set(texts(draw_feature_maps(np.zeros((3, 2, 2)), "title")))


def test_an_overlay_is_hot_where_the_values_are_high():
    heat = np.zeros((4, 4))
    heat[0, 3] = 1.0
    image = np.full((40, 40, 3), 100, dtype=np.uint8)
    result = overlay(image, heat, opacity=(0.25, 0.5)).astype(int)
    hot, cold = heat_colors(np.array([1.0, 0.0]), "inferno").astype(int)
    assert np.abs(result[1, 38] - (100 + hot) / 2).max() <= 1
    assert np.abs(result[38, 1] - (3 * 100 + cold) / 4).max() <= 1


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_an_overlay_of_equal_or_not_finite_values_is_cold(value):
    result = overlay(np.zeros((8, 8, 3), dtype=np.uint8), np.full((2, 2), value), (1.0, 1.0))
    assert (result == heat_colors(np.zeros(1), "inferno")).all()
