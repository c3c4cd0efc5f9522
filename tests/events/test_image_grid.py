from __future__ import annotations

import numpy as np
import pytest
import torch

from hookline.events.image_grid import FRAME, GREEN, GREY, MAX_IMAGES, RED, image_grid


@pytest.mark.parametrize(
    "inputs", [None, [1], torch.ones(2, 3), torch.ones(1, 2, 4, 4), torch.ones(0, 1, 4, 4)]
)
def test_inputs_that_are_no_images_have_no_grid(inputs: object) -> None:
    assert image_grid(inputs) is None


def test_the_first_images_are_tiled_with_frames() -> None:
    grid = image_grid(torch.rand(MAX_IMAGES + 1, 3, 5, 7))
    assert grid is not None
    assert grid.shape == (4 * (5 + 2 * FRAME), 4 * (7 + 2 * FRAME), 3)
    assert tuple(grid[0, 0]) == GREY


def test_values_are_scaled_to_the_full_range_and_gray_has_three_channels() -> None:
    inputs = torch.tensor([[[[-1.0, 0.0], [0.5, 1.0]]]])
    grid = image_grid(inputs)
    assert grid is not None
    inner = grid[FRAME:-FRAME, FRAME:-FRAME]
    assert inner[..., 0].tolist() == [[0, 127], [191, 255]]
    assert np.array_equal(inner[..., 0], inner[..., 2])


def test_a_constant_image_is_drawn() -> None:
    grid = image_grid(torch.ones(1, 1, 2, 2))
    assert grid is not None
    assert (grid[FRAME:-FRAME, FRAME:-FRAME] == 0).all()


def test_the_frame_shows_whether_the_class_is_right() -> None:
    predictions = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.1, 0.9]])
    grid = image_grid(torch.rand(3, 1, 4, 4), predictions, torch.tensor([0, 1, 1]))
    assert grid is not None
    size = 4 + 2 * FRAME
    assert grid.shape == (2 * size, 2 * size, 3)
    corners = [tuple(grid[0, 0]), tuple(grid[0, size]), tuple(grid[size, 0])]
    assert corners == [GREEN, RED, GREEN]
    assert tuple(grid[size, size]) == (255, 255, 255)


@pytest.mark.parametrize(
    ("predictions", "targets"),
    [
        (torch.rand(1), torch.tensor([0])),
        (torch.rand(1, 2), torch.tensor([[0]])),
        (torch.rand(1, 2), torch.tensor([0.5])),
        ([1], torch.tensor([0])),
    ],
)
def test_results_that_are_no_classes_have_gray_frames(predictions, targets) -> None:
    grid = image_grid(torch.rand(1, 1, 4, 4), predictions, targets)
    assert grid is not None
    assert tuple(grid[0, 0]) == GREY
