"""Heat maps: each value is where it should be, in the colour it should have."""

from __future__ import annotations

import io

import matplotlib
import numpy as np
import pytest
import torch
from PIL import Image

from hookline.visual import as_maps, feature_map_figure, mosaic
from hookline.visual.heat_maps import GAP, TILE


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
    assert as_maps(torch.zeros(shape), limit=2).shape == expected


def test_of_a_volume_the_middle_slice_is_shown():
    volume = torch.randn(2, 5, 4, 3)
    assert torch.equal(as_maps(volume, limit=8), volume[:, 2])


def test_maps_stand_row_by_row_with_a_gap_between_them():
    maps = torch.arange(3 * TILE * TILE).reshape(3, TILE, TILE).float()
    picture = mosaic(maps)
    assert picture.shape == (2 * TILE + GAP, 2 * TILE + GAP)
    own_range = (maps[2] - maps[2].min()) / (maps[2].max() - maps[2].min())
    assert torch.allclose(picture[TILE + GAP :, :TILE], own_range)
    assert picture[TILE : TILE + GAP].isnan().all()
    assert picture[TILE + GAP :, TILE + GAP :].isnan().all()  # there is no fourth map


def test_a_small_map_is_blown_up_without_mixing_its_values():
    picture = mosaic(torch.tensor([[[0.0, 1.0], [2.0, 4.0]]]))
    half = TILE // 2
    assert picture.shape == (TILE, TILE)
    assert picture[:half, :half].unique().tolist() == [0.0]
    assert picture[:half, half:].unique().tolist() == [0.25]
    assert picture[half:, half:].unique().tolist() == [1.0]


def test_a_constant_map_is_dark_and_values_that_are_not_finite_stay_empty():
    picture = mosaic(torch.tensor([[[3.0, 3.0], [3.0, float("nan")]], [[float("inf"), 1.0], [0.0, -float("inf")]]]))
    assert picture[0, 0] == 0
    assert picture[-1, TILE - 1].isnan()
    right = picture[:, TILE + GAP :]
    assert right[0, 0].isnan()
    assert right[0, -1] == 1


def test_the_picture_on_paper_shows_the_map():
    figure = feature_map_figure(torch.tensor([[[0.0, 1.0], [1.0, 0.0]]]), "corners")
    image = _rendered(figure)
    height, width, _ = image.shape
    colours = (np.array(matplotlib.colormaps["viridis"]([0.0, 1.0]))[:, :3] * 255).round()
    top = height - width  # the title stands above the square
    for row, column, expected in ((0.25, 0.25, 0), (0.25, 0.75, 1), (0.75, 0.25, 1), (0.75, 0.75, 0)):
        pixel = image[int(top + row * width), int(column * width), :3]
        assert np.abs(pixel - colours[expected]).max() <= 2


def test_a_title_may_hold_characters_that_matplotlib_reads_as_mathematics():
    assert _rendered(feature_map_figure(torch.zeros(1, 2, 2), "a_$b$_\\frac")).size


def _rendered(figure):
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return np.asarray(Image.open(buffer)).astype(float)
