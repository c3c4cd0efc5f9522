"""Reading of detections, and drawing of boxes with labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.visual.backends import render
from hookline.visual.boxes import (
    LABEL_PADDING,
    TILE_SIZE,
    BoxStyle,
    Detections,
    label_size,
    make_box_tile,
    read_detections,
)
from hookline.visual.canvas import Canvas, Raster, Rectangle, Text
from hookline.visual.colors import BLACK, OKABE_ITO, WHITE, class_color, contrasting_color

SIZE = (64, 64)
ZOOM = TILE_SIZE // 64


def read(value, box_format="xyxy", sizes=(SIZE,)):
    return read_detections(value, sizes, box_format, "predictions")


def tile(boxes, labels, scores=None, **style):
    if scores is not None:
        scores = np.array(scores)
    found = Detections(np.array(boxes, dtype=float), np.array(labels), scores)
    image = np.zeros((*SIZE, 3), dtype=np.uint8)
    return make_box_tile(image, found, BoxStyle(**style), "predicted")


def draw(tile, backend="pillow"):
    canvas = Canvas(*tile.pixels.shape[:2])
    canvas.add(Raster(0, 0, tile.pixels), *tile.shapes)
    return render(canvas, backend)


def texts(tile):
    return [shape for shape in tile.shapes if isinstance(shape, Text)]


def test_a_known_box_is_drawn_at_its_place_with_its_label_above():
    result = tile([[10, 30, 30, 50]], [1], thickness=2)
    expected = np.zeros((TILE_SIZE, TILE_SIZE), dtype=bool)
    expected[30 * ZOOM : 50 * ZOOM, 10 * ZOOM : 30 * ZOOM] = True
    expected[30 * ZOOM + 2 : 50 * ZOOM - 2, 10 * ZOOM + 2 : 30 * ZOOM - 2] = False
    width, height = label_size("1")
    expected[30 * ZOOM - height : 30 * ZOOM, 10 * ZOOM : 10 * ZOOM + width] = True
    result.shapes = [shape for shape in result.shapes if isinstance(shape, Rectangle)]
    for backend in ("pillow", "matplotlib"):
        assert np.array_equal((draw(result, backend) == class_color(1)).all(-1), expected)


@pytest.mark.parametrize(
    ("box_format", "box"),
    [("xyxy", [10, 20, 40, 60]), ("xywh", [10, 20, 30, 40]), ("cxcywh", [25, 40, 30, 40])],
)
def test_all_formats_mean_the_same_box(box_format, box):
    (found,) = read([{"boxes": np.array([box]), "labels": np.array([2])}], box_format)
    assert found.boxes.tolist() == [[10, 20, 40, 60]]
    assert found.labels.tolist() == [2]
    assert found.scores is None


def test_coordinates_from_0_to_1_are_fractions_of_the_image():
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
def test_fractions_may_reach_over_the_edge(box_format, over_the_edge, expected):
    value = [
        {"boxes": np.array([over_the_edge, [0.5, 0.5, 0.5, 0.5]])},
        {"boxes": np.array([[0.5, 0.5, 1.0, 1.0]])},
    ]
    first, second = read(value, box_format, [(40, 80), (10, 10)])
    assert first.boxes[0] == pytest.approx(expected)
    assert second.boxes.max() == 10


def test_a_small_box_is_in_pixels_if_others_of_the_batch_are():
    value = [
        {"boxes": np.array([[0.0, 0.0, 1.0, 1.0]])},
        {"boxes": np.array([[10.0, 20.0, 40.0, 60.0]])},
    ]
    first, second = read(value, sizes=[SIZE, SIZE])
    assert first.boxes.tolist() == [[0, 0, 1, 1]]
    assert second.boxes.tolist() == [[10, 20, 40, 60]]


def test_stacked_boxes_are_read_without_their_padding():
    stacked = {"boxes": np.zeros((2, 3, 4)), "labels": np.array([[1, -1, -1], [0, 2, -1]])}
    assert [found.labels.tolist() for found in read(stacked, sizes=[SIZE, SIZE])] == [[1], [0, 2]]


def test_an_image_without_boxes_is_drawn_without_them():
    (found,) = read([{"boxes": np.zeros((0, 4)), "labels": np.zeros(0)}])
    result = make_box_tile(np.zeros((*SIZE, 3), dtype=np.uint8), found, BoxStyle(), "truth")
    assert result.captions[0][0] == "truth: 0 objects"
    assert result.shapes == []


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([{"boxes": np.zeros((7, 5))}], r"predictions: .*\[N, 4\], got \[7, 5\]"),
        ([{"boxes": np.zeros(4)}], r"got \[4\]"),
        ([{"boxes": np.zeros((2, 4)), "labels": np.zeros(3)}], "2 boxes, but 3 labels"),
        ([{"boxes": np.zeros((2, 4)), "scores": np.zeros(1)}], "2 boxes, but 1 scores"),
        ([{"bboxes": np.zeros((2, 4))}], "'boxes'.*got dict"),
        ([np.zeros((2, 4))], "'boxes'.*got ndarray"),
        ({"bboxes": np.zeros((2, 4))}, "'boxes'.*'bboxes'"),
        (np.zeros((2, 4)), "'boxes'.*got ndarray"),
        ([], "0 for 1 images"),
        (None, "'predictions'"),
    ],
)
def test_malformed_predictions_are_rejected(value, message):
    with pytest.raises(ValueError, match=message):
        read(value)


def test_boxes_below_the_threshold_are_not_drawn():
    result = tile([[5, 20, 15, 30], [40, 40, 60, 60]], [0, 1], [0.2, 0.9], score_thr=0.3)
    assert {shape.color for shape in result.shapes if isinstance(shape, Rectangle)} == {
        class_color(1)
    }
    assert [text.text for text in texts(result)] == ["1 90%"]
    assert result.captions[0][0] == "predicted: 1 object"


def test_labels_have_names_scores_and_given_colors():
    style = {"box_color": (9, 8, 7), "text_color": (1, 2, 3)}
    result = tile([[10, 20, 40, 60]], [1], [0.96], class_names=["cat", "dog"], **style)
    (text,) = texts(result)
    assert (text.text, text.color) == ("dog 96%", (1, 2, 3))
    assert {shape.color for shape in result.shapes if isinstance(shape, Rectangle)} == {(9, 8, 7)}


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
@pytest.mark.parametrize("background", [BLACK, WHITE, (120, 120, 120), *OKABE_ITO])
def test_a_label_is_legible_on_any_background(backend, background):
    found = Detections(np.array([[5.0, 20, 60, 60]]), np.array([0]), np.array([0.98]))
    image = np.full((*SIZE, 3), background, dtype=np.uint8)
    result = make_box_tile(image, found, BoxStyle(class_names=["cat"]), "truth")
    (text,) = texts(result)
    width, height = label_size(text.text)
    left = round(text.x) - LABEL_PADDING
    top = round(text.y - height / 2)
    plate = draw(result, backend)[top : top + height, left : left + width].astype(int)
    ink = np.array(contrasting_color(OKABE_ITO[0]))
    assert (np.abs(plate - ink).max(-1) < 60).sum() > 30
    assert (plate == OKABE_ITO[0]).all(-1).sum() > 100


boxes = st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(2, 30), st.integers(2, 30))


@given(st.lists(boxes, min_size=1, max_size=4))
def test_labels_stay_inside_the_image(places):
    corners = [[x, y, min(x + width, 64), min(y + height, 64)] for x, y, width, height in places]
    result = tile(corners, range(len(places)), class_names=["a long name"] * 4)
    for text in texts(result):
        width, height = label_size(text.text)
        assert text.x - LABEL_PADDING >= 0
        assert text.x - LABEL_PADDING + width <= TILE_SIZE
        assert height / 2 <= text.y <= TILE_SIZE - height / 2


def test_labels_of_boxes_at_one_place_do_not_hide_each_other():
    labels = texts(tile([[10, 20, 40, 50], [10, 20, 40, 50], [11, 21, 41, 51]], [0, 1, 2]))
    width, height = label_size("0")
    for index, label in enumerate(labels):
        for other in labels[:index]:
            assert abs(label.y - other.y) >= height or abs(label.x - other.x) >= width


def test_labels_of_many_boxes_at_the_edge_do_not_hide_each_other():
    labels = texts(tile([[10, 2, 30, 24]] * 12, range(12), class_names=["a long name"] * 12))
    rows = sorted(label.y for label in labels)
    height = label_size("a long name")[1]
    assert np.diff(rows).min() >= height


def test_a_large_image_is_shrunk_with_its_boxes():
    found = Detections(np.array([[0.0, 500, 1000, 1000]]), np.array([0]), None)
    image = np.zeros((1000, 1000, 3), dtype=np.uint8)
    result = make_box_tile(image, found, BoxStyle(), "truth")
    assert result.pixels.shape == (TILE_SIZE, TILE_SIZE, 3)
    assert (draw(result)[TILE_SIZE // 2, 60:] == class_color(0)).all()
