"""Images with their true and predicted classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hookline.visual.canvas import Canvas
from hookline.visual.colors import BLACK, RIGHT, WRONG, Color
from hookline.visual.grid import ColoredText, Tile, draw_grid
from hookline.visual.images import enlarge_or_shrink, shape_text, zoom_to

TILE_SIZE = 112  # pixels


class Prediction(NamedTuple):
    """A predicted class, with its probability if the model gave one."""

    label: int
    confidence: float | None


def draw_classification(
    images: Sequence[np.ndarray],
    truth: Sequence[int] | None,
    predictions: Sequence[Prediction] | None,
    title: str,
    class_names: Sequence[str] = (),
    score_thr: float = 0.0,
) -> Canvas:
    """Draw images with true and predicted classes. Mistakes are framed in red.

    A prediction with a confidence below `score_thr` is marked with a question mark.
    """
    check_count("targets", truth, len(images))
    check_count("predictions", predictions, len(images))
    tiles = []
    mistakes = 0
    for index, image in enumerate(images):
        target = None if truth is None else truth[index]
        captions: list[ColoredText] = []
        frame = None
        if target is not None:
            captions.append((f"truth {class_name(target, class_names)}", BLACK))
        if predictions is not None:
            prediction = predictions[index]
            caption = caption_prediction(prediction, target, class_names, score_thr)
            captions.append((caption, prediction_color(prediction, target)))
            if target is not None and prediction.label != target:
                frame = WRONG
                mistakes += 1
        pixels = enlarge_or_shrink(image, zoom_to(image, TILE_SIZE))
        tiles.append(Tile(pixels, captions, frame))
    if truth is not None and predictions is not None:
        title = f"{title}: {len(tiles) - mistakes} of {len(tiles)} right"
    if any(is_uncertain(prediction, score_thr) for prediction in predictions or ()):
        title += f" (?: below {score_thr:.0%})"
    return draw_grid(tiles, title)


def check_count(field: str, values: Sequence[Any] | None, images: int) -> None:
    """Raise ValueError if there are fewer values than images."""
    if values is not None and len(values) < images:
        raise ValueError(f"{field}: {len(values)} for {images} images")


def read_labels(targets: Any) -> list[int]:
    """Read classes from labels [N], or from one score per class [N, classes]."""
    array = np.asarray(targets)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:
        array = array.argmax(1)
    if array.ndim != 1 or array.dtype == object:
        raise ValueError(f"targets: expected labels [N], got {shape_text(array)}")
    return [int(label) for label in array]


def read_predictions(values: Any) -> list[Prediction]:
    """Read predictions from scores or probabilities [N, classes], labels [N], or one score [N].

    One score per sample separates class 1 from class 0.
    """
    if values is None:
        raise ValueError("the step returned no 'predictions' to draw")
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or array.dtype == object:
        raise ValueError(
            f"predictions: expected scores [N, classes] or labels [N], got {shape_text(array)}"
        )
    if array.ndim == 1 and array.dtype.kind in "iub":
        return [Prediction(int(label), None) for label in array]
    probabilities = to_probabilities(array)
    if array.ndim == 1:
        probabilities = np.stack([1 - probabilities, probabilities], axis=1)
    return [Prediction(int(row.argmax()), float(row.max())) for row in probabilities]


def caption_prediction(
    prediction: Prediction,
    target: int | None,
    class_names: Sequence[str],
    score_thr: float = 0.0,
) -> str:
    """Return a caption such as `✓ cat 98%`."""
    text = class_name(prediction.label, class_names)
    if prediction.confidence is not None:
        if is_uncertain(prediction, score_thr):
            text += "?"
        text += f" {prediction.confidence:.0%}"
    if target is None:
        return text
    mark = "✓" if prediction.label == target else "✗"
    return f"{mark} {text}"


def is_uncertain(prediction: Prediction, score_thr: float) -> bool:
    """Return whether a prediction has a confidence below a threshold."""
    return prediction.confidence is not None and prediction.confidence < score_thr


def prediction_color(prediction: Prediction, target: int | None) -> Color:
    """Return the color of a right or wrong prediction, black if the truth is not known."""
    if target is None:
        return BLACK
    return RIGHT if prediction.label == target else WRONG


def class_name(label: int, class_names: Sequence[str]) -> str:
    """Return the name of a class, or its number if it has none."""
    if 0 <= label < len(class_names):
        return class_names[label]
    return str(label)


def to_probabilities(scores: np.ndarray) -> np.ndarray:
    """Convert scores [N, classes] with softmax, and scores [N] with the sigmoid.

    Values that are probabilities already are returned unchanged.
    """
    scores = scores.astype(np.float64)
    is_between = bool(((scores >= 0) & (scores <= 1)).all())
    if scores.ndim == 1:
        return scores if is_between else 1 / (1 + np.exp(-scores))
    if is_between and np.allclose(scores.sum(1), 1, atol=1e-3):
        return scores
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))
