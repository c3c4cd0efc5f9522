"""Heat maps: each value at its place, in its color."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

from hookline.visual.backends import render
from hookline.visual.colors import heat_colors
from hookline.visual.heat_maps import (
    GAP,
    TILE_SIZE,
    TITLE_HEIGHT,
    as_maps,
    draw_feature_maps,
    make_mosaic,
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


def test_maps_stand_in_rows_with_a_gap_between_them():
    maps = np.arange(3 * TILE_SIZE * TILE_SIZE).reshape(3, TILE_SIZE, TILE_SIZE)
    mosaic = make_mosaic(maps)
    assert mosaic.shape == (2 * TILE_SIZE + GAP, 2 * TILE_SIZE + GAP)
    scaled = (maps[2] - maps[2].min()) / (maps[2].max() - maps[2].min())
    assert np.allclose(mosaic[TILE_SIZE + GAP :, :TILE_SIZE], scaled)
    assert np.isnan(mosaic[TILE_SIZE : TILE_SIZE + GAP]).all()
    assert np.isnan(mosaic[TILE_SIZE + GAP :, TILE_SIZE + GAP :]).all()  # there is no fourth map


def test_a_small_map_is_enlarged_without_mixing_its_values():
    mosaic = make_mosaic(np.array([[[0.0, 1.0], [2.0, 4.0]]]))
    half = TILE_SIZE // 2
    assert mosaic.shape == (TILE_SIZE, TILE_SIZE)
    assert np.unique(mosaic[:half, :half]).tolist() == [0.0]
    assert np.unique(mosaic[:half, half:]).tolist() == [0.25]
    assert np.unique(mosaic[half:, half:]).tolist() == [1.0]


def test_a_constant_map_is_dark():
    assert np.unique(make_mosaic(np.full((1, 2, 2), 3.0))).tolist() == [0.0]


def test_values_that_are_not_finite_stay_empty():
    mosaic = make_mosaic(np.array([[[np.inf, 1.0], [0.0, -np.inf]]]))
    assert np.isnan(mosaic[0, 0])
    assert np.isnan(mosaic[-1, -1])
    assert mosaic[0, -1] == 1
    assert mosaic[-1, 0] == 0


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
def test_feature_maps_are_drawn_in_the_colors_of_viridis(backend):
    canvas = draw_feature_maps(np.array([[[0.0, 1.0], [1.0, 0.0]]]), "corners")
    pixels = render(canvas, backend)
    low, high = matplotlib.colormaps["viridis"]([0.0, 1.0], bytes=True)[:, :3]
    left = (canvas.width - TILE_SIZE) // 2
    quarter = TILE_SIZE // 4
    upper = pixels[TITLE_HEIGHT + quarter]
    lower = pixels[TITLE_HEIGHT + 3 * quarter]
    assert np.array_equal(upper[left + quarter], low)
    assert np.array_equal(upper[left + 3 * quarter], high)
    assert np.array_equal(lower[left + quarter], high)
    assert np.array_equal(lower[left + 3 * quarter], low)


def test_an_overlay_is_hot_where_the_values_are_high():
    heat = np.zeros((4, 4))
    heat[0, 3] = 1.0
    image = np.full((40, 40, 3), 100, dtype=np.uint8)
    result = overlay(image, heat, opacity=0.5).astype(int)
    hot, cold = heat_colors(np.array([1.0, 0.0]), "inferno").astype(int)
    assert np.abs(result[1, 38] - (100 + hot) / 2).max() <= 1
    assert np.abs(result[38, 1] - (100 + cold) / 2).max() <= 1


@pytest.mark.parametrize("value", [1.0, np.nan])
def test_an_overlay_of_equal_or_not_finite_values_is_cold(value):
    result = overlay(np.zeros((8, 8, 3), dtype=np.uint8), np.full((2, 2), value), opacity=1.0)
    assert (result == heat_colors(np.zeros(1), "inferno")).all()
