"""Classes: what is read out of predictions, and how mistakes are marked."""

from __future__ import annotations

import numpy as np
import pytest

from hookline.visual.canvas import Picture
from hookline.visual.classification import Guess, classification_picture, read_guesses, read_labels
from hookline.visual.colours import RIGHT, WRONG
from hookline.visual.explanation import Explanation, explanation_picture
from hookline.visual.render import render


def texts(picture: Picture) -> list[str]:
    return [text.text for text in picture.texts]


def test_a_mistake_is_framed_crossed_and_red_and_what_is_right_is_not():
    images = [np.full((8, 8, 3), 200, dtype=np.uint8)] * 2
    picture = classification_picture(images, [7, 3], [Guess(7, 0.98), Guess(5, 0.4)], "validation, step 10")
    assert texts(picture) == ["validation, step 10: 1 of 2 right", "truth 7", "✓ 7 98%", "truth 3", "✗ 5 40%"]
    colours = {text.text: text.colour for text in picture.texts}
    assert colours["✓ 7 98%"] == RIGHT
    assert colours["✗ 5 40%"] == WRONG
    framed = np.nonzero((picture.pixels == WRONG).all(-1))[1]
    assert framed.min() > picture.pixels.shape[1] / 2 - 10


def test_names_are_used_and_an_unsure_prediction_has_a_question_mark():
    picture = classification_picture([np.zeros((8, 8, 3), np.uint8)], None, [Guess(1, 0.2)], "t", ["cat", "dog"], score_thr=0.3)
    assert texts(picture) == ["t", "dog? 20%"]


def test_sixteen_images_stand_in_a_grid_that_is_about_square():
    image = np.zeros((8, 8, 3), np.uint8)
    pixels = render(classification_picture([image] * 16, [0] * 16, [Guess(0, 1.0)] * 16, "sixteen"))
    assert 0.6 < pixels.shape[0] / pixels.shape[1] < 1.6


def test_fewer_targets_or_predictions_than_images_are_named():
    images = [np.zeros((8, 8, 3), np.uint8)] * 3
    with pytest.raises(ValueError, match="targets: 1 for 3 images"):
        classification_picture(images, [1], None, "t")
    with pytest.raises(ValueError, match="predictions: 2 for 3 images"):
        classification_picture(images, [1] * 3, [Guess(1, 0.9)] * 2, "t")
    explanation = Explanation({"map": np.zeros((3, 8, 8))}, [0] * 3, [0.5] * 3)
    with pytest.raises(ValueError, match="targets: 2 for 3 images"):
        explanation_picture(images, explanation, [1, 1], [], "t")


@pytest.mark.parametrize(
    ("predictions", "expected"),
    [
        (np.array([[0.0, np.log(3)], [np.log(9), 0]]), [(1, 0.75), (0, 0.9)]),  # scores
        (np.array([[0.25, 0.75]]), [(1, 0.75)]),  # probabilities
        (np.array([np.log(3), -np.log(3)]), [(1, 0.75), (0, 0.75)]),  # one score
        (np.array([[0.75], [0.1]]), [(1, 0.75), (0, 0.9)]),  # one probability
        (np.array([2, 0]), [(2, None), (0, None)]),  # labels
    ],
)
def test_predictions_of_all_kinds_are_read(predictions, expected):
    guesses = read_guesses(predictions)
    assert [guess.label for guess in guesses] == [label for label, _ in expected]
    assert [guess.confidence for guess in guesses] == pytest.approx([confidence for _, confidence in expected])


def test_targets_may_be_labels_or_one_hot():
    assert read_labels(np.array([2, 0])) == read_labels(np.array([[2], [0]])) == read_labels(np.array([[0, 0, 1], [0.9, 0.1, 0]])) == [2, 0]


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (read_guesses, np.zeros((2, 3, 4)), r"expected scores \[N, classes\] or labels \[N\], got \[2, 3, 4\]"),
        (read_guesses, None, "the step gave no 'predictions' to draw"),
        (read_labels, np.zeros((2, 3, 4)), r"expected labels \[N\], got \[2, 3, 4\]"),
    ],
)
def test_malformed_ones_are_named(read, value, message):
    with pytest.raises(ValueError, match=message):
        read(value)
