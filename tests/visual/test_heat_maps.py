"""Heat maps: each value is where it should be, in the colour it should have."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

from hookline.visual import as_maps, feature_map_picture, mosaic, render
from hookline.visual.colours import heat_colours
from hookline.visual.heat_maps import GAP, TILE, TITLE, overlay


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


def test_of_a_volume_the_middle_slice_is_shown():
    volume = np.random.default_rng(0).normal(size=(2, 5, 4, 3))
    assert np.array_equal(as_maps(volume, limit=8), volume[:, 2])


def test_maps_stand_row_by_row_with_a_gap_between_them():
    maps = np.arange(3 * TILE * TILE).reshape(3, TILE, TILE)
    picture = mosaic(maps)
    assert picture.shape == (2 * TILE + GAP, 2 * TILE + GAP)
    own_range = (maps[2] - maps[2].min()) / (maps[2].max() - maps[2].min())
    assert np.allclose(picture[TILE + GAP :, :TILE], own_range)
    assert np.isnan(picture[TILE : TILE + GAP]).all()
    assert np.isnan(picture[TILE + GAP :, TILE + GAP :]).all()  # there is no fourth map


def test_a_small_map_is_blown_up_without_mixing_its_values():
    picture = mosaic(np.array([[[0.0, 1.0], [2.0, 4.0]]]))
    half = TILE // 2
    assert picture.shape == (TILE, TILE)
    assert np.unique(picture[:half, :half]).tolist() == [0.0]
    assert np.unique(picture[:half, half:]).tolist() == [0.25]
    assert np.unique(picture[half:, half:]).tolist() == [1.0]


def test_a_constant_map_is_dark_and_values_that_are_not_finite_stay_empty():
    picture = mosaic(np.array([[[3.0, 3.0], [3.0, float("nan")]], [[float("inf"), 1.0], [0.0, -float("inf")]]]))
    assert picture[0, 0] == 0
    assert np.isnan(picture[-1, TILE - 1])
    right = picture[:, TILE + GAP :]
    assert np.isnan(right[0, 0])
    assert right[0, -1] == 1


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
def test_the_picture_on_paper_shows_the_map(backend):
    picture = feature_map_picture(np.array([[[0.0, 1.0], [1.0, 0.0]]]), "corners")
    image = render(picture, backend)
    colours = (np.array(matplotlib.colormaps["viridis"]([0.0, 1.0]))[:, :3] * 255).round()
    left = (image.shape[1] - TILE) // 2
    for row, column, expected in ((0.25, 0.25, 0), (0.25, 0.75, 1), (0.75, 0.25, 1), (0.75, 0.75, 0)):
        pixel = image[int(TITLE + row * TILE), int(left + column * TILE)]
        assert np.abs(pixel - colours[expected]).max() <= 2


def test_a_title_may_hold_characters_that_matplotlib_reads_as_mathematics():
    assert render(feature_map_picture(np.zeros((1, 2, 2)), "a_$b$_\\frac"), "matplotlib").size


def test_a_heat_map_over_an_image_is_hot_where_its_values_are_high():
    heat = np.zeros((4, 4))
    heat[0, 3] = 1.0
    image = np.full((40, 40, 3), 100, dtype=np.uint8)
    result = overlay(image, heat, opacity=0.5).astype(int)
    hot, cold = heat_colours(np.array([1.0, 0.0]), "inferno").astype(int)
    assert np.abs(result[1, 38] - (100 + hot) / 2).max() <= 1
    assert np.abs(result[38, 1] - (100 + cold) / 2).max() <= 1


def test_an_overlay_of_a_map_that_is_the_same_everywhere_or_not_finite_is_cold():
    image = np.zeros((8, 8, 3), dtype=np.uint8)
    for heat in (np.ones((2, 2)), np.full((2, 2), np.nan)):
        assert len(np.unique(overlay(image, heat).reshape(-1, 3), axis=0)) == 1
