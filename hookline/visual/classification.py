"""Images with their true and predicted classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hookline.visual.canvas import Picture
from hookline.visual.colours import BLACK, RIGHT, WRONG
from hookline.visual.grid import Tile, grid
from hookline.visual.images import shape_text, zoom_for, zoomed

TILE = 112


class Guess(NamedTuple):
    """A predicted class, with the model's confidence if it gave one."""

    label: int
    confidence: float | None


def classification_picture(
    images: Sequence[np.ndarray],
    truth: Sequence[int] | None,
    guesses: Sequence[Guess] | None,
    title: str,
    names: Sequence[str] = (),
    score_thr: float = 0.0,
) -> Picture:
    """A grid of images; mistakes are framed in red and crossed, and a prediction below `score_thr` has a question mark."""
    check_count("targets", truth, len(images))
    check_count("predictions", guesses, len(images))
    tiles = []
    for index, image in enumerate(images):
        target = None if truth is None else truth[index]
        guess = None if guesses is None else guesses[index]
        wrong = target is not None and guess is not None and guess.label != target
        captions = [] if target is None else [(f"truth {name_of(target, names)}", BLACK)]
        if guess is not None:
            captions.append((guess_text(guess, target, names, score_thr), WRONG if wrong else RIGHT if target is not None else BLACK))
        tiles.append(Tile(zoomed(image, zoom_for(image, TILE)), captions, WRONG if wrong else None))
    if truth is not None and guesses is not None:
        right = sum(guess.label == target for guess, target, _ in zip(guesses, truth, images, strict=False))
        title = f"{title}: {right} of {len(tiles)} right"
    return grid(tiles, title)


def check_count(what: str, given: Sequence[Any] | None, images: int) -> None:
    if given is not None and len(given) < images:
        raise ValueError(f"{what}: {len(given)} for {images} images")


def read_labels(targets: Any) -> list[int]:
    """Classes from labels [N], or from one score for each class [N, classes]."""
    array = np.asarray(targets)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:
        array = array.argmax(1)
    if array.ndim != 1 or array.dtype == object:
        raise ValueError(f"targets: expected labels [N], got {shape_text(array)}")
    return [int(label) for label in array]


def read_guesses(predictions: Any) -> list[Guess]:
    """Predictions from scores or probabilities [N, classes], one score [N] for two classes, or labels."""
    if predictions is None:
        raise ValueError("the step gave no 'predictions' to draw")
    array = np.asarray(predictions)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim not in (1, 2) or array.dtype == object:
        raise ValueError(f"predictions: expected scores [N, classes] or labels [N], got {shape_text(array)}")
    if array.ndim == 1 and array.dtype.kind in "iub":
        return [Guess(int(label), None) for label in array]
    probabilities = _probabilities(array)
    if array.ndim == 1:
        return [Guess(int(p > 0.5), float(max(p, 1 - p))) for p in probabilities]
    return [Guess(int(row.argmax()), float(row.max())) for row in probabilities]


def _probabilities(scores: np.ndarray) -> np.ndarray:
    scores = scores.astype(np.float64)
    between = bool(((scores >= 0) & (scores <= 1)).all())
    if scores.ndim == 1:
        return scores if between else 1 / (1 + np.exp(-scores))
    if between and np.allclose(scores.sum(1), 1, atol=1e-3):
        return scores
    powers = np.exp(scores - scores.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def guess_text(guess: Guess, target: int | None, names: Sequence[str], score_thr: float = 0.0) -> str:
    mark = "" if target is None else "✗ " if guess.label != target else "✓ "
    unsure = "?" if guess.confidence is not None and guess.confidence < score_thr else ""
    confidence = "" if guess.confidence is None else f" {guess.confidence:.0%}"
    return f"{mark}{name_of(guess.label, names)}{unsure}{confidence}"


def name_of(label: int, names: Sequence[str]) -> str:
    return names[label] if 0 <= label < len(names) else str(label)
