"""Pictures of each kind show the same content with both backends."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from hookline.hooks.attention_map_hook import draw_attention
from hookline.visual.backends import render
from hookline.visual.bars import draw_gradient_bars, draw_gradient_history
from hookline.visual.boxes import BoxStyle, Detections, make_box_tile
from hookline.visual.canvas import Text
from hookline.visual.classification import Prediction, draw_classification
from hookline.visual.explanation import Explanation, draw_explanation
from hookline.visual.grid import draw_grid
from hookline.visual.heat_maps import draw_feature_maps
from hookline.visual.histograms import draw_histograms
from hookline.visual.masks import MaskStyle, make_legend, make_mask_tile
from hookline.visual.text import text_width

RANDOM = np.random.default_rng(0)
IMAGE = RANDOM.integers(0, 255, (8, 8, 3), dtype=np.uint8)
MASK = RANDOM.integers(0, 3, (8, 8))
NAMES = ["背景", "cat", "dog"]
PREDICTIONS = [Prediction(1, 0.9), Prediction(2, 0.2)]
FLOW = {"features.0": (1e-3, 1e-1), "head": (1e-5, 1e-4)}


def draw_boxes():
    found = Detections(np.array([[1.0, 2, 5, 6]]), np.array([1]), np.array([0.8]))
    tile = make_box_tile(IMAGE, found, BoxStyle(NAMES), "predicted")
    return draw_grid([tile, tile], "boxes", tiles_per_sample=2)


def draw_masks():
    style = MaskStyle(NAMES)
    tiles = [make_mask_tile(IMAGE, MASK, style, "truth")]
    return draw_grid(tiles, "masks", legend=make_legend([MASK], style))


def draw_explained():
    explanation = Explanation({"saliency": RANDOM.random((2, 8, 8))}, PREDICTIONS)
    return draw_explanation([IMAGE, IMAGE], explanation, [1, 1], NAMES, "explained")


KINDS = {
    "classes": lambda: draw_classification(
        [IMAGE, IMAGE], [1, 1], PREDICTIONS, "classes", NAMES, 0.3
    ),
    "boxes": draw_boxes,
    "masks": draw_masks,
    "feature maps": lambda: draw_feature_maps(RANDOM.random((5, 4, 4)), "maps", (), IMAGE),
    "attention": lambda: draw_attention(RANDOM.random((4, 65, 65)), IMAGE, "attention"),
    "attention matrices": lambda: draw_attention(RANDOM.random((4, 7, 7)), None, "attention"),
    "explanation": draw_explained,
    "gradient bars": lambda: draw_gradient_bars(FLOW, "gradients", ["head"]),
    "gradient history": lambda: draw_gradient_history(
        {"features.0": [1e-3, 1e-1], "head": [1e-5, 1e-4]}, [0, 10], "history"
    ),
    "histograms": lambda: draw_histograms(
        {"head": (RANDOM.normal(size=99), RANDOM.normal(size=99))}, "histograms"
    ),
}

every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
def test_both_backends_show_the_same_content(kind):
    canvas = KINDS[kind]()
    texts = [shape for shape in canvas.shapes if isinstance(shape, Text)]
    without_texts = replace(
        canvas, shapes=[shape for shape in canvas.shapes if not isinstance(shape, Text)]
    )
    plain = render(without_texts, "pillow")
    assert np.array_equal(plain, render(without_texts, "matplotlib"))
    for backend in ("pillow", "matplotlib"):
        is_ink = (render(canvas, backend) != plain).any(-1)
        for text in texts:
            rows, columns = place_of(text)
            assert is_ink[rows, columns].any(), text.text
            is_ink[rows, columns] = False
        assert not is_ink.any()


def place_of(text):
    """Return the rows and columns of a text with a margin for the differences of letters."""
    width = text_width(text.text, text.size)
    left = text.x - {"left": 0, "center": width / 2, "right": width}[text.align]
    rows = slice(max(0, round(text.y - text.size)), round(text.y + text.size))
    return rows, slice(max(0, round(left - 4)), round(left + width + 6))


@every_kind
def test_no_text_leaves_the_picture_or_overlaps_another(kind):
    canvas = KINDS[kind]()
    places = []
    for text in canvas.shapes:
        if isinstance(text, Text):
            width = text_width(text.text, text.size)
            left = text.x - {"left": 0, "center": width / 2, "right": width}[text.align]
            assert left >= 0
            assert left + width <= canvas.width
            assert text.size / 2 <= text.y <= canvas.height - text.size / 2
            places.append((left, text.y - text.size / 2, left + width, text.y + text.size / 2))
    for index, one in enumerate(places):
        for other in places[:index]:
            is_apart = one[0] >= other[2] or other[0] >= one[2]
            assert is_apart or one[1] >= other[3] or other[1] >= one[3]


@every_kind
def test_the_matplotlib_backend_draws_a_figure(kind, monkeypatch):
    figures = []
    draw = FigureCanvasAgg.draw

    def recording_draw(agg):
        draw(agg)
        figures.append((agg.figure, np.array(agg.buffer_rgba())[..., :3]))

    monkeypatch.setattr(FigureCanvasAgg, "draw", recording_draw)
    canvas = KINDS[kind]()
    render(canvas, "pillow")
    assert not figures
    pixels = render(canvas, "matplotlib")
    ((figure, drawn),) = figures
    assert np.array_equal(pixels, drawn)
    assert len(figure.texts) >= len([shape for shape in canvas.shapes if isinstance(shape, Text)])
