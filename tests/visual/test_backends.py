"""Both backends draw the same shapes, and texts at the same places."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.visual.backends import BACKENDS, render
from hookline.visual.canvas import Canvas, Raster, Rectangle, Text
from hookline.visual.text import text_width

RED = (200, 0, 0)
GREEN = (0, 120, 0)

both_backends = pytest.mark.parametrize("backend", ["pillow", "matplotlib"])


def bounds(pixels, color):
    """Return left, top, right and bottom of the pixels of a color, and their number."""
    rows, columns = np.nonzero((pixels == color).all(-1))
    return (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1), len(rows)


def dark_bounds(pixels):
    rows, columns = np.nonzero(pixels.max(-1) < 128)
    return columns.min(), rows.min(), columns.max() + 1, rows.max() + 1


def test_the_backends_are_those_of_the_documents():
    assert set(BACKENDS) == {"matplotlib", "pillow"}


@both_backends
def test_a_canvas_has_its_size_and_background(backend):
    pixels = render(Canvas(31, 47, background=GREEN), backend)
    assert pixels.dtype == np.uint8
    assert pixels.shape == (31, 47, 3)
    assert (pixels == GREEN).all()


@both_backends
def test_a_filled_rectangle_covers_exactly_its_pixels(backend):
    canvas = Canvas(20, 30)
    canvas.add(Rectangle(3, 4, 7, 5, RED))
    assert bounds(render(canvas, backend), RED) == ((3, 4, 10, 9), 35)


@both_backends
@pytest.mark.parametrize("thickness", [1, 2, 3])
def test_a_frame_lies_inside_its_bounds(backend, thickness):
    canvas = Canvas(20, 30)
    canvas.add(Rectangle(3, 4, 10, 10, RED, thickness))
    inside = (10 - 2 * thickness) ** 2
    assert bounds(render(canvas, backend), RED) == ((3, 4, 13, 14), 100 - inside)


@both_backends
def test_an_image_keeps_its_pixels_and_covers_shapes_below_it(backend):
    image = np.random.default_rng(0).integers(0, 255, (6, 9, 3), dtype=np.uint8)
    canvas = Canvas(20, 30)
    canvas.add(Rectangle(0, 0, 30, 20, RED), Raster(5, 7, image), Rectangle(5, 7, 2, 2, GREEN))
    pixels = render(canvas, backend)
    assert np.array_equal(pixels[9:13, 7:14], image[2:, 2:])
    assert bounds(pixels, GREEN) == ((5, 7, 7, 9), 4)


sizes = st.integers(0, 60)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(sizes, sizes, sizes, sizes, st.integers(0, 1)), min_size=1, max_size=6))
def test_both_backends_draw_the_same_pixels_of_rectangles(rectangles):
    canvas = Canvas(41, 53)
    for number, (x, y, width, height, thickness) in enumerate(rectangles, start=1):
        if width > 2 and height > 2:
            canvas.add(Rectangle(x - 5, y - 5, width, height, (number * 30, 0, 0), thickness))
    assert np.array_equal(render(canvas, "pillow"), render(canvas, "matplotlib"))


@both_backends
@pytest.mark.parametrize(("align", "center"), [("left", 127), ("center", 100), ("right", 73)])
def test_a_text_is_at_its_place(backend, align, center):
    canvas = Canvas(60, 200)
    canvas.add(Text(100, 30, "HHHH", 20, align=align))
    left, top, right, bottom = dark_bounds(render(canvas, backend))
    width = text_width("HHHH", 20)
    assert width == pytest.approx(60, abs=4)
    expected_center = 100 + {"left": 0.5, "center": 0, "right": -0.5}[align] * width
    assert (left + right) / 2 == pytest.approx(expected_center, abs=3)
    assert (top + bottom) / 2 == pytest.approx(30, abs=3)
    assert right - left == pytest.approx(width, abs=6)


@both_backends
def test_a_text_has_its_color(backend):
    canvas = Canvas(40, 100)
    canvas.add(Text(10, 20, "HHHH", 20, color=RED))
    assert (render(canvas, backend) == RED).all(-1).any()


@both_backends
@pytest.mark.parametrize(
    "place", [(-8, 10), (195, 10), (100, -3), (100, 58), (500, 10), (100, 500), (-300, -300)]
)
def test_shapes_outside_the_canvas_are_cut_off(backend, place):
    canvas = Canvas(60, 200)
    canvas.add(
        Text(*place, "Häg $x_1$", size=14),
        Text(*place, " "),
        Rectangle(*place, 30, 30, RED),
        Rectangle(*place, 30, 30, RED, 2),
        Raster(*place, np.zeros((30, 30, 3), dtype=np.uint8)),
    )
    assert render(canvas, backend).shape == (60, 200, 3)


def test_matplotlib_does_not_read_names_as_formulas():
    canvas = Canvas(40, 200)
    canvas.add(Text(10, 20, "a_$b$_\\frac", 14))
    left, _, right, _ = dark_bounds(render(canvas, "matplotlib"))
    assert right - left == pytest.approx(text_width("a_$b$_\\frac", 14), abs=5)
