"""Histograms of weights and gradients."""

from __future__ import annotations

import numpy as np

from hookline.visual.histograms import BAR, BINS, GRADIENTS, MAX_ROWS, NAMES, TOP, WEIGHTS, histogram_picture


def test_bars_are_as_high_as_values_are_frequent():
    values = np.concatenate([np.zeros(100), np.ones(50)])
    picture = histogram_picture({"layer": (values, values)}, "title")
    column = NAMES + 14 + 1
    first = (picture.pixels[TOP : TOP + 34, column] == WEIGHTS).all(-1).sum()
    last = (picture.pixels[TOP : TOP + 34, column + (BINS - 1) * BAR] == WEIGHTS).all(-1).sum()
    assert (first, last) == (32, 16)
    assert (picture.pixels == GRADIENTS).all(-1).any()
    assert {"layer", "weights", "gradients", "0", "1"} <= {text.text for text in picture.texts}


def test_values_that_are_not_finite_or_not_there_are_no_obstacle():
    picture = histogram_picture({"odd": (np.array([np.nan, np.inf, 1.0]), np.zeros(0))}, "title")
    assert "none" in {text.text for text in picture.texts}


def test_of_many_layers_some_are_shown():
    layers = {f"layer.{index}": (np.ones(3), np.ones(3)) for index in range(100)}
    names = [text.text for text in histogram_picture(layers, "title").texts if text.text.startswith("layer.")]
    assert len(names) == MAX_ROWS
    assert (names[0], names[-1]) == ("layer.0", "layer.99")
