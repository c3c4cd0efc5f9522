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
from hookline.visual.grid import Tile, draw_grid
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
    """Draw each image with its true class, and beside it with each of its heat maps."""
    check_count("targets", truth, len(images))
    tiles = []
    for index, image in enumerate(images):
        target = None if truth is None else truth[index]
        prediction = explanation.predictions[index]
        caption = caption_prediction(prediction, target, class_names)
        color = prediction_color(prediction, target)
        pixels = enlarge_or_shrink(image, zoom_to(image, TILE_SIZE))
        input_caption = "input"
        if target is not None:
            input_caption = f"truth {class_name(target, class_names)}"
        tiles.append(Tile(pixels, [(input_caption, BLACK)]))
        for heat in explanation.maps.values():
            tiles.append(Tile(overlay(pixels, heat[index]), [(caption, color)]))
    return draw_grid(
        tiles,
        f"{title}: {', '.join(explanation.maps)}",
        tiles_per_sample=1 + len(explanation.maps),
        scale="relevance for the prediction, low to high",
    )
