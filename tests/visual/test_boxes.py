"""Boxes are where they should be, whatever they come in, and what is wrong with them is named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.visual.boxes import TILE, BoxStyle, Detections, box_tile, read_detections
from hookline.visual.canvas import label_size
from hookline.visual.colours import colour_of

SIZE = (64, 64)
ZOOM = TILE // 64


def read(value, box_format="xyxy", sizes=(SIZE,)):
    return read_detections(value, sizes, box_format, "predictions")


def tile(boxes, labels, scores=None, **style):
    found = Detections(np.array(boxes, dtype=float), np.array(labels), None if scores is None else np.array(scores))
    return box_tile(np.zeros((*SIZE, 3), dtype=np.uint8), found, BoxStyle(**style), "predicted")


def test_a_known_box_is_where_it_should_be():
    pixels = tile([[10, 30, 30, 50]], [1], thickness=2).pixels
    colour = colour_of(1)
    expected = np.zeros((TILE, TILE), dtype=bool)
    expected[30 * ZOOM : 50 * ZOOM, 10 * ZOOM : 30 * ZOOM] = True
    expected[30 * ZOOM + 2 : 50 * ZOOM - 2, 10 * ZOOM + 2 : 30 * ZOOM - 2] = False
    width, height = label_size("1")
    expected[30 * ZOOM - height : 30 * ZOOM, 10 * ZOOM : 10 * ZOOM + width] = True  # its label, above
    assert np.array_equal((pixels == colour).all(-1), expected)


@pytest.mark.parametrize(
    ("box_format", "box"),
    [("xyxy", [10, 20, 40, 60]), ("xywh", [10, 20, 30, 40]), ("cxcywh", [25, 40, 30, 40])],
)
def test_all_formats_mean_the_same_box(box_format, box):
    (found,) = read([{"boxes": np.array([box]), "labels": np.array([2])}], box_format)
    assert found.boxes.tolist() == [[10, 20, 40, 60]]
    assert found.labels.tolist() == [2]
    assert found.scores is None


def test_fractions_of_the_image_are_told_from_pixels():
    (found,) = read([{"boxes": np.array([[0.5, 0.5, 0.25, 0.5]])}], "cxcywh", [(40, 80)])
    assert found.boxes.tolist() == [[30, 10, 50, 30]]


@pytest.mark.parametrize(
    ("box_format", "over_the_edge", "expected"),
    [
        ("cxcywh", [0.9, 0.5, 0.3, 0.5], [60, 10, 80, 30]),  # its right end is at 1.05
        ("xywh", [0.75, 0.25, 0.3, 0.5], [60, 10, 80, 30]),
        ("xyxy", [-0.02, 0.25, 1.05, 0.75], [0, 10, 80, 30]),
    ],
)
def test_a_box_over_the_edge_does_not_make_pixels_of_fractions(box_format, over_the_edge, expected):
    value = [{"boxes": np.array([over_the_edge, [0.5, 0.5, 0.5, 0.5]])}, {"boxes": np.array([[0.5, 0.5, 1.0, 1.0]])}]
    first, second = read(value, box_format, [(40, 80), (10, 10)])
    assert first.boxes[0] == pytest.approx(expected)
    assert second.boxes.max() == 10


def test_a_small_box_among_large_ones_is_in_pixels_like_they_are():
    value = [{"boxes": np.array([[0.0, 0.0, 1.0, 1.0]])}, {"boxes": np.array([[10.0, 20.0, 40.0, 60.0]])}]
    first, second = read(value, sizes=[SIZE, SIZE])
    assert first.boxes.tolist() == [[0, 0, 1, 1]]
    assert second.boxes.tolist() == [[10, 20, 40, 60]]


def test_stacked_boxes_are_read_and_padding_is_left_out():
    stacked = {"boxes": np.zeros((2, 3, 4)), "labels": np.array([[1, -1, -1], [0, 2, -1]])}
    assert [found.labels.tolist() for found in read(stacked, sizes=[SIZE, SIZE])] == [[1], [0, 2]]


def test_an_image_without_boxes_is_drawn_without_them():
    (found,) = read([{"boxes": np.zeros((0, 4)), "labels": np.zeros(0)}])
    assert box_tile(np.zeros((*SIZE, 3), dtype=np.uint8), found, BoxStyle(), "truth").captions[0][0] == "truth: 0"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"boxes": np.zeros((7, 5))}], r"predictions: expected boxes \[N, 4\], got \[7, 5\]"),
        ([{"boxes": np.zeros(4)}], r"expected boxes \[N, 4\], got \[4\]"),
        ([{"boxes": np.zeros((2, 4)), "labels": np.zeros(3)}], "2 boxes, but 3 labels"),
        ([{"boxes": np.zeros((2, 4)), "scores": np.zeros(1)}], "2 boxes, but 1 scores"),
        ([{"bboxes": np.zeros((2, 4))}], "expected for each image a dict with 'boxes'"),
        ({"bboxes": np.zeros((2, 4))}, "expected a dict with 'boxes', got one with 'bboxes'"),
        (np.zeros((2, 4)), "expected for each image a dict with 'boxes', 'labels' and perhaps 'scores', got ndarray"),
        ([], "predictions: 0 for 1 images"),
        (None, "the step gave no 'predictions' to draw"),
    ],
)
def test_malformed_predictions_are_named(value, message):
    with pytest.raises(ValueError, match=message):
        read(value)


def test_boxes_below_the_threshold_are_left_out():
    result = tile([[5, 20, 15, 30], [40, 40, 60, 60]], [0, 1], [0.2, 0.9], score_thr=0.3)
    assert not (result.pixels == colour_of(0)).all(-1).any()
    assert [text.text for text in result.texts] == ["1 90%"]
    assert result.captions[0][0] == "predicted: 1"


def test_labels_have_names_scores_and_given_colours():
    result = tile([[10, 20, 40, 60]], [1], [0.975], names=["cat", "dog"], box_colour=(9, 8, 7), text_colour=(1, 2, 3))
    assert [(text.text, text.colour) for text in result.texts] == [("dog 98%", (1, 2, 3))] or result.texts[0].text == "dog 97%"
    assert (result.pixels == (9, 8, 7)).all(-1).any()


boxes = st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(2, 30), st.integers(2, 30))


@given(st.lists(boxes, min_size=1, max_size=4))
def test_labels_stay_inside_of_the_image(places):
    result = tile([[x, y, min(x + w, 64), min(y + h, 64)] for x, y, w, h in places], range(len(places)), names=["a long name"] * 4)
    for text in result.texts:
        width, height = label_size(text.text)
        assert text.x - 3 >= 0
        assert text.x - 3 + width <= TILE
        assert height / 2 <= text.y <= TILE - height / 2


def test_labels_of_boxes_at_one_place_do_not_hide_each_other():
    texts = tile([[10, 20, 40, 50], [10, 20, 40, 50], [11, 21, 41, 51]], [0, 1, 2]).texts
    places = [(text.x, text.y) for text in texts]
    height = label_size("0")[1]
    for index, (x, y) in enumerate(places):
        assert all(abs(y - other_y) >= height or abs(x - other_x) >= label_size("0")[0] for other_x, other_y in places[:index])


def test_a_large_image_is_made_smaller_with_its_boxes():
    found = Detections(np.array([[0.0, 500, 1000, 1000]]), np.array([0]), None)
    result = box_tile(np.zeros((1000, 1000, 3), dtype=np.uint8), found, BoxStyle(), "truth")
    assert result.pixels.shape == (TILE, TILE, 3)
    assert (result.pixels[TILE // 2, 60:] == colour_of(0)).all()
