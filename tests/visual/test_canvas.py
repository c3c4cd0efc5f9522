"""Shapes on a canvas."""

from __future__ import annotations

import numpy as np

from hookline.visual.canvas import Canvas, Raster, Rectangle, Text

RED = (200, 0, 0)


def test_shapes_keep_their_drawing_order():
    below = Rectangle(0, 0, 9, 9, RED)
    above = Text(1, 2, "above")
    canvas = Canvas(20, 30)
    canvas.add(below, above)
    canvas.add(below)
    assert canvas.shapes == [below, above, below]


def test_moved_shapes_of_all_kinds_change_their_position_only():
    pixels = np.zeros((2, 2, 3), dtype=np.uint8)
    shapes = [Raster(0, 1, pixels), Rectangle(2, 3, 9, 8, RED, 2), Text(4, 5, "text", color=RED)]
    canvas = Canvas(20, 30)
    canvas.add_moved(shapes, 10, 100)
    raster, rectangle, text = canvas.shapes
    assert (raster.x, raster.y) == (10, 101)
    assert raster.pixels is pixels
    assert rectangle == Rectangle(12, 103, 9, 8, RED, 2)
    assert text == Text(14, 105, "text", color=RED)
