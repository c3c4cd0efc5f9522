"""Masks are where they should be, whatever they come in, in the colours of the legend."""

from __future__ import annotations

import numpy as np
import pytest

from hookline.visual.colours import colour_of
from hookline.visual.masks import TILE, MaskStyle, edges, labels_in, legend_of, mask_tile, read_masks

ZOOM = TILE // 8
MASK = np.zeros((8, 8), dtype=int)
MASK[2:5, 3:7] = 1
GREY = np.full((8, 8, 3), 100, dtype=np.uint8)


def test_a_known_mask_is_where_it_should_be_and_blended_as_told():
    pixels = mask_tile(GREY, MASK, MaskStyle(["background", "cat"], opacity=0.25, show_edge=False), "truth").pixels
    inside = np.zeros((TILE, TILE), dtype=bool)
    inside[2 * ZOOM : 5 * ZOOM, 3 * ZOOM : 7 * ZOOM] = True
    blended = (100 * 0.75 + np.array(colour_of(1)) * 0.25).round().astype(np.uint8)
    assert (pixels[inside] == blended).all()
    assert (pixels[~inside] == 100).all()


def test_edges_have_the_full_colour():
    pixels = mask_tile(GREY, MASK, MaskStyle(["background", "cat"], opacity=0.25), "truth").pixels
    full = (pixels == colour_of(1)).all(-1)
    assert full.sum() == 2 * (4 * ZOOM + 3 * ZOOM) - 4
    assert full[2 * ZOOM, 3 * ZOOM]
    assert not full[2 * ZOOM + 1, 3 * ZOOM + 1]


def test_edges_are_the_pixels_beside_another_class():
    assert edges(np.array([[0, 0, 1], [0, 0, 1]])).tolist() == [[False, True, True]] * 2
    assert not edges(np.ones((3, 3))).any()


def test_the_colour_over_a_coloured_image_is_still_that_of_the_legend():
    image = np.zeros((8, 8, 3), dtype=np.uint8)
    image[..., 0] = 255
    style = MaskStyle(["background", "cat"], opacity=0.5, show_edge=False)
    pixel = mask_tile(image, MASK, style, "truth").pixels[3 * ZOOM, 4 * ZOOM].astype(int)
    ((_, colour),) = legend_of([MASK], style)
    grey = pixel * 2 - np.array(colour)
    assert grey.max() - grey.min() <= 2


def test_the_legend_has_the_classes_that_are_to_be_seen():
    masks = [np.array([[0, 1], [3, 255]]), np.array([[1, 1], [1, -1]])]
    style = MaskStyle(["background", "cat", "dog", "cow"], palette=[(1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4)])
    assert legend_of(masks, style) == [("cat", (2, 2, 2)), ("cow", (4, 4, 4))]
    assert labels_in(masks, MaskStyle()) == [0, 1, 3]  # without names nothing is known to be background


@pytest.mark.parametrize(
    "value",
    [
        MASK[None],
        MASK[None, None].astype(np.int64),
        MASK[None].astype(np.float32),
        np.stack([-MASK, MASK])[None].astype(np.float32),  # scores
        np.stack([MASK == 0, MASK == 1])[None],  # binary masks
        np.stack([MASK == 0, MASK == 1])[None].astype(np.uint8),
        (MASK[None, None] * 8 - 4).astype(np.float32),  # one score
        (MASK[None, None] * 0.8 + 0.1).astype(np.float32),  # one probability
        [MASK],
    ],
)
def test_all_kinds_of_masks_mean_the_same(value):
    (mask,) = read_masks(value, 1, "predictions")
    assert np.array_equal(mask, MASK)


@pytest.mark.parametrize("kind", [bool, np.uint8, np.float32])
def test_pixels_of_no_binary_mask_have_no_class(kind):
    stack = np.zeros((1, 2, 2, 2), dtype=kind)
    stack[0, 1, 0, 0] = True
    assert read_masks(stack, 1, "targets")[0].tolist() == [[1, -1], [-1, -1]]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((4, 4)), r"predictions: expected masks \[N, H, W\], scores or binary masks \[N, classes, H, W\], got \[4, 4\]"),
        ([np.zeros((1, 2, 3, 4))] * 2, r"expected a mask \[H, W\] or \[classes, H, W\], got \[1, 2, 3, 4\]"),
        ({"masks": 1}, "got dict"),
        (np.zeros((1, 4, 4)), "predictions: 1 masks for 2 images"),
        (None, "the step gave no 'predictions' to draw"),
    ],
)
def test_malformed_masks_are_named(value, message):
    with pytest.raises(ValueError, match=message):
        read_masks(value, 2, "predictions")


def test_a_mask_of_another_size_is_fitted_to_the_image():
    pixels = mask_tile(np.zeros((16, 16, 3), dtype=np.uint8), np.array([[0, 1], [0, 0]]), MaskStyle(["background", "x"]), "truth").pixels
    assert pixels[TILE // 4, 3 * TILE // 4].any()
    assert not pixels[TILE // 4, TILE // 4].any()
