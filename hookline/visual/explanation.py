"""Images beside heat maps that explain the predicted classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hookline.visual.canvas import Canvas
from hookline.visual.classification import (
    Prediction,
    caption_prediction,
    check_count,
    class_name,
    prediction_color,
)
from hookline.visual.colors import BLACK
from hookline.visual.grid import ColorScale, Tile, draw_grid
from hookline.visual.heat_maps import overlay
from hookline.visual.images import enlarge_or_shrink, zoom_to

TILE_SIZE = 128  # pixels


class Explanation(NamedTuple):
    """Predictions, and heat maps [N, H, W] that explain them, by the name of the method."""

    maps: Mapping[str, np.ndarray]
    predictions: Sequence[Prediction]


def draw_explanation(
    images: Sequence[np.ndarray],
    explanation: Explanation,
    truth: Sequence[int] | None,
    class_names: Sequence[str],
    title: str,
) -> Canvas:
    """Draw each image with its true class, and beside it with each of its heat maps.

    Each heat map has the name of its method and the predicted class below it.
    """
    check_count("targets", truth, len(images))
    tiles = []
    for index, image in enumerate(images):
        zoom = zoom_to(image, TILE_SIZE)
        target = None if truth is None else truth[index]
        captions = [("input", BLACK)]
        if target is not None:
            captions.append((f"truth {class_name(target, class_names)}", BLACK))
        tiles.append(Tile(enlarge_or_shrink(image, zoom), captions))
        prediction = explanation.predictions[index]
        caption = caption_prediction(prediction, target, class_names)
        color = prediction_color(prediction, target)
        for method, maps in explanation.maps.items():
            pixels = enlarge_or_shrink(overlay(image, maps[index]), zoom)
            tiles.append(Tile(pixels, [(method, BLACK), (f"predicted {caption}", color)]))
    return draw_grid(
        tiles,
        f"{title}: {', '.join(explanation.maps)}",
        tiles_per_sample=1 + len(explanation.maps),
        scale=ColorScale("relevance for the prediction, each map on its own scale"),
    )
