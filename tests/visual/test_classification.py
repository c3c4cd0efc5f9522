"""Reading of classes, and drawing of right and wrong predictions."""

from __future__ import annotations

import numpy as np
import pytest

from hookline.visual.backends import render
from hookline.visual.canvas import Text
from hookline.visual.classification import (
    Prediction,
    draw_classification,
    read_labels,
    read_predictions,
)
from hookline.visual.colors import RIGHT, WRONG
from hookline.visual.explanation import Explanation, draw_explanation

IMAGE = np.full((8, 8, 3), 200, dtype=np.uint8)


def colors_of_texts(canvas):
    return {shape.text: shape.color for shape in canvas.shapes if isinstance(shape, Text)}


def test_a_mistake_is_crossed_red_and_framed():
    predictions = [Prediction(7, 0.98), Prediction(5, 0.4)]
    canvas = draw_classification([IMAGE] * 2, [7, 3], predictions, "validation, step 10")
    colors = colors_of_texts(canvas)
    assert list(colors) == [
        "validation, step 10: 1 of 2 right",
        "truth 7",
        "✓ 7 98%",
        "truth 3",
        "✗ 5 40%",
    ]
    assert colors["✓ 7 98%"] == RIGHT
    assert colors["✗ 5 40%"] == WRONG
    framed_columns = np.nonzero((render(canvas) == WRONG).all(-1))[1]
    assert framed_columns.min() > canvas.width / 2 - 10


def test_an_unsure_prediction_has_a_question_mark():
    predictions = [Prediction(1, 0.2)]
    canvas = draw_classification([IMAGE], None, predictions, "t", ["cat", "dog"], score_thr=0.3)
    assert list(colors_of_texts(canvas)) == ["t (?: below 30%)", "dog? 20%"]


def test_too_few_targets_or_predictions_are_rejected():
    images = [IMAGE] * 3
    with pytest.raises(ValueError, match="targets: 1 for 3 images"):
        draw_classification(images, [1], None, "t")
    with pytest.raises(ValueError, match="predictions: 2 for 3 images"):
        draw_classification(images, [1] * 3, [Prediction(1, 0.9)] * 2, "t")
    explanation = Explanation({"map": np.zeros((3, 8, 8))}, [Prediction(0, 0.5)] * 3)
    with pytest.raises(ValueError, match="targets: 2 for 3 images"):
        draw_explanation(images, explanation, [1, 1], [], "t")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([[0.0, np.log(3)], [np.log(9), 0]]), [(1, 0.75), (0, 0.9)]),  # scores
        (np.array([[0.25, 0.75]]), [(1, 0.75)]),  # probabilities
        (np.array([np.log(3), -np.log(3)]), [(1, 0.75), (0, 0.75)]),  # one score
        (np.array([[0.75], [0.1]]), [(1, 0.75), (0, 0.9)]),  # one probability
        (np.array([2, 0]), [(2, None), (0, None)]),  # labels
    ],
)
def test_predictions_of_all_kinds_are_read(values, expected):
    predictions = read_predictions(values)
    assert [prediction.label for prediction in predictions] == [label for label, _ in expected]
    confidences = [prediction.confidence for prediction in predictions]
    assert confidences == pytest.approx([confidence for _, confidence in expected])


@pytest.mark.parametrize("targets", [[2, 0], [[2], [0]], [[0, 0, 1], [0.9, 0.1, 0]]])
def test_targets_are_labels_or_one_hot(targets):
    assert read_labels(np.array(targets)) == [2, 0]


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (read_predictions, np.zeros((2, 3, 4)), r"predictions: .*got \[2, 3, 4\]"),
        (read_predictions, None, "'predictions'"),
        (read_labels, np.zeros((2, 3, 4)), r"targets: .*got \[2, 3, 4\]"),
    ],
)
def test_malformed_values_are_rejected(read, value, message):
    with pytest.raises(ValueError, match=message):
        read(value)
