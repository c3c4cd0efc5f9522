"""Conversion of inputs of every layout and range into images."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.visual.images import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    channels_last,
    enlarge_or_shrink,
    find_scaling,
    resize_map,
    to_rgb,
    zoom_to,
)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((8, 9), (8, 9, 1)),
        ((1, 8, 9), (8, 9, 1)),
        ((3, 8, 9), (8, 9, 3)),
        ((8, 9, 3), (8, 9, 3)),
        ((8, 9, 1), (8, 9, 1)),
        ((3, 8, 3), (8, 3, 3)),
        ((12, 32, 33), (32, 33, 12)),  # many channels
        ((32, 33, 12), (32, 33, 12)),
        ((2, 8, 9), (8, 9, 2)),
    ],
)
def test_channels_are_found_first_or_last(shape, expected):
    assert channels_last(np.zeros(shape)).shape == expected


def test_an_array_that_is_not_an_image_is_rejected():
    with pytest.raises(ValueError, match=r"got \[5\]"):
        channels_last(np.zeros(5))


@given(st.lists(st.integers(0, 255), min_size=12, max_size=12))
def test_bytes_and_fractions_are_drawn_as_they_are(values):
    image = np.array(values, dtype=np.uint8).reshape(2, 2, 3)
    fractions = (image / 255).astype(np.float32)
    assert np.array_equal(to_rgb(image, find_scaling([image])), image)
    assert np.array_equal(to_rgb(fractions, find_scaling([fractions])), image)


def test_a_given_normalization_is_undone():
    image = np.random.default_rng(0).uniform(0, 1, (4, 5, 3)).astype(np.float32)
    normalized = (image - IMAGENET_MEAN) / np.array(IMAGENET_STD)
    scaling = find_scaling([normalized], IMAGENET_MEAN, IMAGENET_STD)
    assert scaling.guess == ""
    assert np.array_equal(to_rgb(normalized, scaling), (image * 255).round())


def test_a_normalization_of_bytes_is_undone():
    image = np.array([[[0, 128, 255]]], dtype=np.float32)
    mean, std = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
    assert np.array_equal(to_rgb((image - mean) / std, find_scaling([image], mean, std)), image)


@pytest.mark.parametrize(
    ("low", "high", "channels", "guess"),
    [
        (-1.0, 1.0, 3, "mean 0.5 and std 0.5"),
        (-2.1, 2.6, 3, "ImageNet's mean and std"),
        (-2.1, 2.6, 1, "darkest -2.1 and brightest 2.6"),
        (-9.0, 40.0, 3, "darkest -9 and brightest 40"),
        (0.0, 1.0, 3, ""),
        (0.0, 255.0, 3, ""),
        (0.0, 16.0, 1, "darkest 0 and brightest 16"),
    ],
)
def test_a_normalization_is_guessed_from_the_range(low, high, channels, guess):
    image = np.full((2, 2, channels), low, dtype=np.float32)
    image[0, 0] = high
    assert find_scaling([image]).guess == guess


def test_a_mean_for_another_number_of_channels_is_rejected():
    with pytest.raises(ValueError, match="mean has 2 values.*3 channels"):
        find_scaling([np.zeros((2, 2, 3))], [0.5, 0.5], None)


def test_one_channel_is_gray_two_are_averaged_and_of_more_the_first_three_are_drawn():
    image = np.stack(
        [np.full((2, 2), value, dtype=np.float32) for value in (0.2, 0.4, 0.6, 0.8)], -1
    )
    scaling = find_scaling([image])
    assert to_rgb(image[..., :1], scaling)[0, 0].tolist() == [51, 51, 51]
    assert to_rgb(image[..., :2], scaling)[0, 0] == pytest.approx([76.5] * 3, abs=0.5)
    assert to_rgb(image, scaling)[0, 0].tolist() == [51, 102, 153]


def test_values_that_are_not_finite_are_drawn_dark_or_bright():
    image = np.array([[[np.nan], [np.inf], [-np.inf], [0.5]]], dtype=np.float32)
    assert to_rgb(image, find_scaling([image]))[0, :, 0].tolist() == [0, 255, 0, 128]


@given(st.integers(1, 600), st.integers(1, 600))
def test_small_images_are_enlarged_by_whole_factors_and_large_ones_are_shrunk(height, width):
    image = np.zeros((height, width, 3), dtype=np.uint8)
    large = enlarge_or_shrink(image, zoom_to(image, 128))
    assert max(large.shape[:2]) <= 128
    if max(height, width) <= 128:
        assert large.shape[0] % height == 0
        assert large.shape[1] % width == 0


def test_a_resized_map_keeps_its_corners():
    values = np.array([[0.0, 1.0], [2.0, 3.0]])
    large = resize_map(values, 20, 30)
    assert large.shape == (20, 30)
    assert (large[0, 0], large[0, -1], large[-1, 0], large[-1, -1]) == (0, 1, 2, 3)
