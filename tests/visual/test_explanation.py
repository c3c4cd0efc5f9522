"""Images beside heat maps that explain predictions."""

from __future__ import annotations

import numpy as np
import pytest

from hookline.visual.canvas import Raster, Text
from hookline.visual.classification import Prediction
from hookline.visual.colors import BLACK, RIGHT, WRONG
from hookline.visual.explanation import Explanation, draw_explanation

IMAGES = [np.full((8, 8, 3), value, dtype=np.uint8) for value in (50, 90)]


def draw(truth):
    maps = np.arange(2 * 64, dtype=float).reshape(2, 8, 8)
    explanation = Explanation(
        {"saliency": maps, "Grad-CAM of 3": maps}, [Prediction(0, 0.75), Prediction(1, 0.5)]
    )
    return draw_explanation(IMAGES, explanation, truth, ["cat", "dog"], "training, step 5")


def captions(canvas):
    """Return the captions below each tile, with their colors, in drawing order."""
    found = []
    for shape in canvas.shapes:
        if isinstance(shape, Raster):
            found.append([])
        elif isinstance(shape, Text) and found:
            found[-1].append((shape.text, shape.color))
    return found


def test_each_tile_has_a_caption_of_its_content():
    tiles = [each[:2] for each in captions(draw([0, 0]))]
    right = ("predicted ✓ cat 75%", RIGHT)
    wrong = ("predicted ✗ dog 50%", WRONG)
    assert tiles[:6] == [
        [("input", BLACK), ("truth cat", BLACK)],
        [("saliency", BLACK), right],
        [("Grad-CAM of 3", BLACK), right],
        [("input", BLACK), ("truth cat", BLACK)],
        [("saliency", BLACK), wrong],
        [("Grad-CAM of 3", BLACK), wrong],
    ]


def test_without_targets_captions_make_no_judgment():
    tiles = captions(draw(None))
    assert tiles[0] == [("input", BLACK)]
    assert tiles[1] == [("saliency", BLACK), ("predicted cat 75%", BLACK)]


def test_a_title_names_the_methods_and_a_scale_explains_the_colors():
    texts = [shape.text for shape in draw(None).shapes if isinstance(shape, Text)]
    assert texts[0] == "training, step 5: saliency, Grad-CAM of 3"
    assert [text for text in texts if text in ("low", "high")] == ["low", "high"]
    assert any(text.startswith("relevance") for text in texts)


def test_fewer_targets_than_images_are_rejected():
    with pytest.raises(ValueError, match="targets: 1 for 2 images"):
        draw([0])
