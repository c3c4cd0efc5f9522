"""Reading and drawing of segmentation masks."""

from __future__ import annotations

import numpy as np
import pytest

from hookline.visual.colors import class_color
from hookline.visual.masks import (
    TILE_SIZE,
    MaskStyle,
    find_class,
    find_edges,
    make_legend,
    make_mask_tile,
    read_masks,
    visible_labels,
)

ZOOM = TILE_SIZE // 8
MASK = np.zeros((8, 8), dtype=int)
MASK[2:5, 3:7] = 1
GRAY = np.full((8, 8, 3), 100, dtype=np.uint8)
NAMES = ["background", "cat"]


def test_a_known_mask_is_blended_into_its_place():
    style = MaskStyle(NAMES, opacity=0.25, show_edge=False)
    pixels = make_mask_tile(GRAY, MASK, style, "truth").pixels
    inside = np.zeros((TILE_SIZE, TILE_SIZE), dtype=bool)
    inside[2 * ZOOM : 5 * ZOOM, 3 * ZOOM : 7 * ZOOM] = True
    blended = (100 * 0.75 + np.array(class_color(1)) * 0.25).round().astype(np.uint8)
    assert (pixels[inside] == blended).all()
    assert (pixels[~inside] == 100).all()


def test_edges_are_opaque():
    pixels = make_mask_tile(GRAY, MASK, MaskStyle(NAMES, opacity=0.25), "truth").pixels
    is_opaque = (pixels == class_color(1)).all(-1)
    assert is_opaque.sum() == 2 * (4 * ZOOM + 3 * ZOOM) - 4
    assert is_opaque[2 * ZOOM, 3 * ZOOM]
    assert not is_opaque[2 * ZOOM + 1, 3 * ZOOM + 1]


def test_edges_are_the_pixels_beside_another_class():
    assert find_edges(np.array([[0, 0, 1], [0, 0, 1]])).tolist() == [[False, True, True]] * 2
    assert not find_edges(np.ones((3, 3))).any()


def test_the_color_over_a_colored_image_is_that_of_the_legend():
    image = np.zeros((8, 8, 3), dtype=np.uint8)
    image[..., 0] = 255
    style = MaskStyle(NAMES, opacity=0.5, show_edge=False)
    pixel = make_mask_tile(image, MASK, style, "truth").pixels[3 * ZOOM, 4 * ZOOM].astype(int)
    ((_, color),) = make_legend([MASK], style)
    gray = pixel * 2 - np.array(color)
    assert gray.max() - gray.min() <= 2


def test_the_legend_lists_the_visible_classes():
    masks = [np.array([[0, 1], [3, 255]]), np.array([[1, 1], [1, -1]])]
    palette = [(1, 1, 1), (2, 2, 2), (3, 3, 3), (4, 4, 4)]
    style = MaskStyle(["background", "cat", "dog", "cow"], palette)
    assert make_legend(masks, style) == [("cat", (2, 2, 2)), ("cow", (4, 4, 4))]


def test_without_names_class_0_is_visible_and_255_is_not():
    assert visible_labels([np.array([[0, 1], [3, 255]])], MaskStyle()) == [0, 1, 3]


@pytest.mark.parametrize(
    ("names", "background", "visible"),
    [
        (["background", "cat", "dog"], None, [1, 2]),
        (["背景", "猫", "狗"], None, [1, 2]),
        (["cat", "dog", "__Background__"], None, [0, 1]),
        (["cat", "backgrounds", "dog"], None, [0, 1, 2]),
        (["sky", "cat", "dog"], "sky", [1, 2]),
        (["background", "cat", "dog"], "cat", [0, 2]),
        (["sky", "cat", "dog"], 2, [0, 1]),
        ([], 0, [1, 2]),
    ],
)
def test_the_background_class_is_left_clear(names, background, visible):
    mask = np.array([[0, 1, 2]]).repeat(3, 1).repeat(9, 0)
    style = MaskStyle(names, background=find_class(background, names))
    assert visible_labels([mask], style) == visible
    image = np.full((9, 9, 3), 100, dtype=np.uint8)
    pixels = make_mask_tile(image, mask, style, "truth").pixels
    for label in range(3):
        is_clear = pixels[:, label * TILE_SIZE // 3 + 2 : (label + 1) * TILE_SIZE // 3 - 4] == 100
        assert is_clear.all() == (label not in visible)


def test_a_background_that_is_not_a_class_is_rejected():
    with pytest.raises(ValueError, match=r"background: 'skies' .*: sky, cat"):
        find_class("skies", ["sky", "cat"])


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
def test_masks_of_all_kinds_are_read(value):
    (mask,) = read_masks(value, 1, "predictions")
    assert np.array_equal(mask, MASK)


def test_labels_of_an_index_map_with_a_channel_axis_are_kept():
    (mask,) = read_masks(MASK[None, None] * 7, 1, "targets")
    assert np.array_equal(mask, MASK * 7)


def test_pixels_with_a_lower_probability_than_the_threshold_have_no_class():
    scores = np.array([[[[0.9, 0.4]], [[0.1, 0.6]]]])
    assert read_masks(scores, 1, "predictions", score_thr=0.7)[0].tolist() == [[0, -1]]
    assert read_masks(scores, 1, "predictions")[0].tolist() == [[0, 1]]


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.float32])
def test_pixels_in_no_binary_mask_have_no_class(dtype):
    stack = np.zeros((1, 2, 2, 2), dtype=dtype)
    stack[0, 1, 0, 0] = True
    assert read_masks(stack, 1, "targets")[0].tolist() == [[1, -1], [-1, -1]]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros((4, 4)), r"predictions: .*got \[4, 4\]"),
        ([np.zeros((1, 2, 3, 4))] * 2, r"predictions: .*got \[1, 2, 3, 4\]"),
        ({"masks": 1}, "got dict"),
        (np.zeros((1, 4, 4)), "1 masks for 2 images"),
        (None, "'predictions'"),
    ],
)
def test_malformed_masks_are_rejected(value, message):
    with pytest.raises(ValueError, match=message):
        read_masks(value, 2, "predictions")


def test_a_mask_of_another_size_is_resized_to_the_image():
    image = np.zeros((16, 16, 3), dtype=np.uint8)
    pixels = make_mask_tile(image, np.array([[0, 1], [0, 0]]), MaskStyle(NAMES), "truth").pixels
    assert pixels[TILE_SIZE // 4, 3 * TILE_SIZE // 4].any()
    assert not pixels[TILE_SIZE // 4, TILE_SIZE // 4].any()


def test_a_large_image_is_shrunk_with_its_mask():
    image = np.zeros((400, 800, 3), dtype=np.uint8)
    mask = np.zeros((400, 800), dtype=int)
    mask[:, 400:] = 1
    pixels = make_mask_tile(image, mask, MaskStyle(NAMES), "truth").pixels
    assert pixels.shape == (TILE_SIZE // 2, TILE_SIZE, 3)
    assert not pixels[:, : TILE_SIZE // 2].any()
    assert pixels[:, TILE_SIZE // 2 :].any(-1).all()
