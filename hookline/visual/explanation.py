"""Images beside the heat maps that explain what a classifier made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hookline.visual.canvas import Picture
from hookline.visual.classification import Guess, check_count, guess_text, name_of
from hookline.visual.colours import BLACK, RIGHT, WRONG
from hookline.visual.grid import Tile, grid
from hookline.visual.heat_maps import overlay
from hookline.visual.images import zoom_for, zoomed

TILE = 128


class Explanation(NamedTuple):
    """Heat maps [N, height, width] by name, of the predicted classes, whose probabilities are the confidences."""

    maps: Mapping[str, np.ndarray]
    labels: Sequence[int]
    confidences: Sequence[float]


def explanation_picture(
    images: Sequence[np.ndarray], explanation: Explanation, truth: Sequence[int] | None, names: Sequence[str], title: str
) -> Picture:
    """For each image the image itself, with its true class, and each heat map over it, with the class that is explained."""
    check_count("targets", truth, len(images))
    tiles = []
    for index, image in enumerate(images):
        target = None if truth is None else truth[index]
        guess = Guess(explanation.labels[index], explanation.confidences[index])
        colour = BLACK if target is None else RIGHT if guess.label == target else WRONG
        large = zoomed(image, zoom_for(image, TILE))
        tiles.append(Tile(large, [("input" if target is None else f"truth {name_of(target, names)}", BLACK)]))
        for maps in explanation.maps.values():
            tiles.append(Tile(overlay(large, maps[index]), [(guess_text(guess, target, names), colour)]))
    kinds = ", ".join(explanation.maps)
    return grid(tiles, f"{title}: {kinds}", per_sample=1 + len(explanation.maps), scale="what counts for the prediction, little to much")
