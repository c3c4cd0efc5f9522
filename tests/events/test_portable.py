"""Records made plain, and through JSON and back."""

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

from hookline.events.portable import from_row, portable, to_png, to_row
from hookline.events.storage import Record


def record(kind, value):
    return portable(Record(kind, "name", value, 5, 1, 12.5))


@pytest.mark.parametrize(
    "image, shape",
    [
        (torch.rand(3, 8, 9), (8, 9, 3)),
        (torch.rand(1, 8, 9), (8, 9, 3)),
        (torch.rand(8, 9), (8, 9, 3)),
        (np.zeros((8, 9, 3), dtype=np.uint8), (8, 9, 3)),
        (np.zeros((8, 9, 4)), (8, 9, 4)),
        (np.full((8, 9), np.nan), (8, 9, 3)),
    ],
)
def test_images_of_any_layout_become_bytes_in_one(image, shape):
    value = record("image", image).value
    assert (value.shape, value.dtype) == (shape, np.uint8)


def test_numbers_from_0_to_1_become_0_to_255_and_whole_numbers_stay():
    assert record("image", torch.tensor([[0.0, 1.0]])).value[0, :, 0].tolist() == [0, 255]
    assert record("image", torch.tensor([[0, 200]])).value[0, :, 0].tolist() == [0, 200]


def test_what_is_no_image_is_refused():
    with pytest.raises(ValueError, match=r"HW, HWC or CHW.*\(2, 3, 4, 5\)"):
        record("image", torch.zeros(2, 3, 4, 5))


sides = st.integers(1, 12)


@given(arrays(np.uint8, st.tuples(sides, sides, st.sampled_from([3, 4]))))
def test_a_png_file_holds_every_pixel(pixels):
    image = Image.open(io.BytesIO(to_png(pixels)))
    assert image.mode == {3: "RGB", 4: "RGBA"}[pixels.shape[2]]
    np.testing.assert_array_equal(np.asarray(image), pixels)


def test_a_png_file_of_a_part_of_an_image_holds_that_part():
    pixels = np.arange(9 * 12 * 3, dtype=np.uint8).reshape(9, 12, 3)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(to_png(pixels[::2, 3:9])))), pixels[::2, 3:9])


def test_a_figure_becomes_an_image_that_outlives_it():
    figure = Figure(figsize=(2, 1), dpi=50)
    figure.subplots().plot([0, 1])
    drawn = record("figure", figure)
    figure.clear()
    assert drawn.kind == "image"
    assert drawn.value.shape == (50, 100, 3)
    assert drawn.value.min() < 255


def test_a_histogram_counts_finite_values_only():
    counts, edges = record("histogram", torch.tensor([0.0, 1.0, 1.0, float("nan"), float("inf")])).value
    assert counts.sum() == 3
    assert (edges[0], edges[-1]) == (0.0, 1.0)


@pytest.mark.parametrize(
    "kind, value", [("image", torch.rand(3, 4, 5)), ("histogram", np.arange(10.0)), ("text", "ä\nb"), ("artifact", "/tmp/x.txt")]
)
def test_a_record_goes_through_json_unchanged(kind, value):
    one = record(kind, value)
    two = from_row(json.loads(json.dumps(to_row(one))))
    assert one._replace(value=None) == two._replace(value=None)
    if kind == "histogram":
        assert all(np.array_equal(a, b) for a, b in zip(one.value, two.value, strict=True))
    else:
        assert np.array_equal(one.value, two.value)
    if kind == "artifact":
        assert two.value == Path("/tmp/x.txt")
