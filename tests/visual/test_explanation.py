from __future__ import annotations

import numpy as np
import pytest

from hookline.visual.canvas import Text
from hookline.visual.classification import Prediction
from hookline.visual.explanation import Explanation, draw_explanation

IMAGE = np.full((8, 8, 3), 200, dtype=np.uint8)


@pytest.mark.parametrize(
    ("truth", "captions"), [([0, 1], ["truth cat", "truth dog"]), (None, ["input", "input"])]
)
def test_an_explanation_shows_each_image_with_its_class(truth, captions):
    explanation = Explanation({"saliency": np.zeros((2, 8, 8))}, [Prediction(0, 0.5)] * 2)
    canvas = draw_explanation([IMAGE] * 2, explanation, truth, ["cat", "dog"], "t")
    texts = [shape.text for shape in canvas.shapes if isinstance(shape, Text)]
    assert "t: saliency" in texts
    assert [text for text in texts if text in captions] == captions
