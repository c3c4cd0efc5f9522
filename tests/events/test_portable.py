"""Conversion of records into plain values, and through JSON and back."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from matplotlib.figure import Figure
from PIL import Image

from hookline.events.portable import from_row, portable, range_beyond, to_png, to_row
from hookline.events.storage import Record


def record(kind, value):
    return portable(Record(kind, "name", value, 5, 1, 12.5))


@pytest.mark.parametrize(
    "image, shape",
    [
        (torch.rand(3, 8, 9), (8, 9, 3)),
        (torch.rand(1, 8, 9), (8, 9, 3)),
        (torch.rand(8, 9), (8, 9, 3)),
        (torch.rand(8, 9).bfloat16(), (8, 9, 3)),
        (np.zeros((8, 9, 3), dtype=np.uint8), (8, 9, 3)),
        (np.zeros((8, 9, 4)), (8, 9, 4)),
        (np.full((8, 9), np.nan), (8, 9, 3)),
    ],
)
def test_images_of_any_layout_become_bytes_with_channels_last(image, shape):
    value = record("image", image).value
    assert (value.shape, value.dtype) == (shape, np.uint8)


@pytest.mark.parametrize(
    "image, expected",
    [
        (torch.tensor([[0.0, 1.0]]), [0, 255]),
        (torch.tensor([[0, 200]]), [0, 200]),
        (torch.tensor([[-5, 300]]), [0, 255]),
        (torch.tensor([[False, True]]), [0, 255]),
    ],
)
def test_fractions_are_scaled_to_bytes_and_integers_are_clipped(image, expected):
    assert record("image", image).value[0, :, 0].tolist() == expected


def test_an_array_that_is_not_an_image_is_rejected_with_its_shape():
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 5\).*one image of the batch"):
        record("image", torch.zeros(2, 3, 4, 5))


@pytest.mark.parametrize(
    "image, expected",
    [
        (torch.tensor([[0.0, 255.0]]), (0, 255)),
        (np.array([[-2.0, np.nan, 2.0]]), (-2, 2)),
        (torch.tensor([[-0.001, 1.001]]), None),
        (torch.tensor([[-5, 300]]), None),
        (np.array([[np.nan]]), None),
    ],
)
def test_the_range_of_an_image_is_returned_if_it_would_be_clipped(image, expected):
    assert range_beyond(image) == expected


sides = st.integers(1, 12)


@given(arrays(np.uint8, st.tuples(sides, sides, st.sampled_from([3, 4]))))
def test_a_png_file_holds_every_pixel(pixels):
    image = Image.open(io.BytesIO(to_png(pixels)))
    assert image.format == "PNG"
    assert image.mode == {3: "RGB", 4: "RGBA"}[pixels.shape[2]]
    np.testing.assert_array_equal(np.asarray(image), pixels)


def test_a_png_file_of_a_strided_view_holds_the_pixels_of_the_view():
    pixels = np.arange(9 * 12 * 3, dtype=np.uint8).reshape(9, 12, 3)
    image = Image.open(io.BytesIO(to_png(pixels[::2, 3:9])))
    np.testing.assert_array_equal(np.asarray(image), pixels[::2, 3:9])


def test_a_figure_becomes_an_image_that_outlives_it():
    figure = Figure(figsize=(2, 1), dpi=50)
    figure.subplots().plot([0, 1])
    drawn = record("figure", figure)
    figure.clear()
    assert drawn.kind == "image"
    assert drawn.value.shape == (50, 100, 3)
    assert drawn.value.min() < 255


def test_a_histogram_counts_finite_values_only():
    values = torch.tensor([0.0, 1.0, 1.0, float("nan"), float("inf")])
    counts, edges = record("histogram", values).value
    assert counts.sum() == 3
    assert (edges[0], edges[-1]) == (0.0, 1.0)


@pytest.mark.parametrize(
    "kind, value",
    [
        ("image", torch.rand(3, 4, 5)),
        ("histogram", np.arange(10.0)),
        ("text", "ä\nb"),
        ("artifact", "/tmp/x.txt"),
    ],
)
def test_a_record_goes_through_json_unchanged(kind, value):
    before = record(kind, value)
    after = from_row(json.loads(json.dumps(to_row(before))))
    assert after._replace(value=None) == before._replace(value=None)
    assert type(after.value) is type(before.value)
    if kind == "histogram":
        assert np.array_equal(after.value.counts, before.value.counts)
        assert np.array_equal(after.value.edges, before.value.edges)
    else:
        assert np.array_equal(after.value, before.value)


def test_an_artifact_is_a_path():
    assert record("artifact", "/tmp/x.txt").value == Path("/tmp/x.txt")
