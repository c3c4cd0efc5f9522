"""Rectangles, frames, labels and texts are where they should be, in both backends."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from hookline.visual.canvas import blank, label_size, shorten, text_width
from hookline.visual.colours import BLACK, OKABE_ITO, WHITE, colour_of, heat_colours, ink_on, parse_colour
from hookline.visual.render import check_backend, render

RED = (200, 0, 0)


def where(pixels, colour):
    rows, columns = np.nonzero((pixels == colour).all(-1))
    return (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1), len(rows)


def test_a_rectangle_covers_just_its_pixels():
    picture = blank(20, 30)
    picture.fill(3, 4, 10, 9, RED)
    assert where(picture.pixels, RED) == ((3, 4, 10, 9), 35)


def test_a_frame_lies_inside_of_its_rectangle():
    picture = blank(20, 30)
    picture.outline(3, 4, 13, 14, RED, thickness=2)
    assert where(picture.pixels, RED) == ((3, 4, 13, 14), 100 - 36)


@pytest.mark.parametrize("box", [(-5, -5, 3, 3), (28, 18, 40, 40), (50, 50, 60, 60), (5, 5, 5, 5)])
def test_what_lies_outside_is_left_out(box):
    picture = blank(20, 30)
    picture.outline(*box, RED, 2)
    assert picture.pixels.shape == (20, 30, 3)


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
def test_both_backends_leave_pixels_as_they_are_and_write_where_told(backend):
    picture = blank(60, 200)
    picture.fill(0, 0, 7, 5, RED)
    picture.write(100, 30, "HHHH", 20, align="center")
    image = render(picture, backend)
    assert image.shape == (60, 200, 3)
    assert image.dtype == np.uint8
    assert where(image, RED) == ((0, 0, 7, 5), 35)
    dark = image.max(-1) < 100
    rows, columns = np.nonzero(dark[6:, 8:])
    assert abs((columns.min() + columns.max()) / 2 + 8 - 100) <= 2
    assert abs((rows.min() + rows.max()) / 2 + 6 - 30) <= 3
    assert abs((columns.max() - columns.min()) - text_width("HHHH", 20)) <= 8  # the room beside the letters


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
def test_a_label_is_legible_on_any_background(backend):
    for ground in (BLACK, WHITE, (120, 120, 120), *OKABE_ITO):
        picture = blank(30, 80, ground)
        picture.label(5, 5, "cat 98%", OKABE_ITO[0])
        width, height = label_size("cat 98%")
        plate = render(picture, backend)[5 : 5 + height, 5 : 5 + width].astype(int)
        ink = np.array(ink_on(OKABE_ITO[0]))
        assert (np.abs(plate - ink).max(-1) < 60).sum() > 30, ground
        assert (plate == OKABE_ITO[0]).all(-1).sum() > 100


def test_long_texts_are_shortened_to_their_room():
    assert shorten("cat", 11, 100) == "cat"
    short = shorten("an extraordinarily long name", 11, 80)
    assert short.endswith("…")
    assert text_width(short, 11) <= 80


def test_an_unknown_backend_is_refused_with_the_nearest():
    with pytest.raises(ValueError, match="VisualizationHook: unknown backend 'matplot'; did you mean 'matplotlib'"):
        check_backend("VisualizationHook", "matplot")


def test_colours_have_names_numbers_and_hexadecimal_digits():
    assert parse_colour("red") == parse_colour("#ff0000") == parse_colour([255, 0, 0]) == (255, 0, 0)
    for wrong in ("rot", [1, 2], [0, 0, 256], 5):
        with pytest.raises(ValueError, match="unknown colour"):
            parse_colour(wrong)


def test_twenty_classes_have_twenty_colours_that_a_colour_blind_eye_tells_apart():
    colours = [colour_of(label) for label in range(20)]
    assert len(set(colours)) == 20
    blind = np.array([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]])  # no green cones (Machado 2009)
    seen = np.array(colours[:7]) @ blind.T
    distances = [np.abs(seen[i] - seen[j]).sum() for i in range(7) for j in range(i)]
    assert min(distances) > 30


def test_ink_is_black_on_light_and_white_on_dark():
    assert ink_on((240, 228, 66)) == BLACK
    assert ink_on((0, 0, 80)) == WHITE


def test_heat_goes_from_cold_to_hot_and_what_is_no_number_is_white():
    colours = heat_colours(np.array([0.0, 1.0, np.nan, 2.0, -1.0]), "inferno")
    assert colours[0].tolist() == colours[4].tolist() == [0, 0, 4]
    assert colours[1].tolist() == colours[3].tolist() == [252, 255, 164]
    assert colours[2].tolist() == [255, 255, 255]


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
@pytest.mark.parametrize("place", [(-8, 10), (195, 10), (100, -3), (100, 58), (500, 10), (100, 500), (-300, -300)])
def test_texts_may_reach_beyond_the_picture(backend, place):
    picture = blank(60, 200)
    picture.write(*place, "Häg $x_1$ 字", size=14)
    picture.write(10, 30, " ")
    assert render(picture, backend).shape == (60, 200, 3)


def test_letters_of_matplotlib_are_those_that_it_draws_in_a_figure():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = blank(60, 240)
    picture.write(10, 30, "Hamburg 98% ✓ äg", size=20, colour=(180, 20, 60))
    figure = Figure(figsize=(2.4001, 0.6001), dpi=100)
    canvas = FigureCanvasAgg(figure)
    figure.text(10 / 240, 0.5, "Hamburg 98% ✓ äg", va="center", fontsize=20 * 72 / 100, color=(180 / 255, 20 / 255, 60 / 255))
    canvas.draw()
    theirs, ours = (
        _around_ink(pixels.astype(int)) for pixels in (np.asarray(canvas.buffer_rgba())[..., :3], render(picture, "matplotlib"))
    )
    assert abs(theirs.shape[1] - ours.shape[1]) <= 2
    assert theirs.shape[0] == ours.shape[0]
    assert abs(theirs.mean() - ours.mean()) < 4


def _around_ink(pixels):
    rows, columns = np.nonzero(pixels.min(-1) < 200)
    return pixels[rows.min() : rows.max() + 1, columns.min() : columns.max() + 1]


ALONE = """
import sys
from hookline.visual.canvas import blank
from hookline.visual.render import render

picture = blank(30, 90)
picture.write(5, 15, "letters")
assert (render(picture, "matplotlib") < 128).any()
assert "matplotlib" not in sys.modules

import matplotlib
import matplotlib.pyplot as plt  # in full, as a hook of the user's might

figure = plt.figure(figsize=(1, 1))
figure.text(0.1, 0.5, "letters")
figure.canvas.draw()
from hookline.visual.render import _ft2font

assert _ft2font() is matplotlib.ft2font
"""


def test_letters_are_had_without_the_import_of_matplotlib_and_leave_it_whole():
    environment = {**os.environ, "MPLBACKEND": "agg"}
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
