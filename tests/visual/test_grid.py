"""Tiles, captions and legends have places of their own."""

from __future__ import annotations

import numpy as np

from hookline.visual.canvas import Text, text_width
from hookline.visual.grid import EDGE, GAP, TITLE, Tile, grid


def tile(value, captions=(("caption", (0, 0, 0)),), size=100, **more):
    return Tile(np.full((size, size, 3), value, dtype=np.uint8), captions, **more)


def test_tiles_stand_row_by_row_with_those_of_a_sample_side_by_side():
    picture = grid([tile(value) for value in (10, 20, 30, 40)], "title", per_sample=2)
    centres = {}
    for value in (10, 20, 30, 40):
        rows, columns = np.nonzero((picture.pixels == value).all(-1))
        assert len(rows) == 100 * 100  # nothing covers it
        centres[value] = (rows.min(), columns.min())
    assert centres[10] == (TITLE, EDGE)
    assert centres[20] == (TITLE, EDGE + 100 + GAP)
    assert centres[30][0] > centres[10][0]
    assert centres[30][1] == EDGE


def test_texts_of_a_tile_move_with_it():
    (text,) = [text for text in grid([tile(10, texts=[Text(5, 7, "inside")])], "title").texts if text.text == "inside"]
    assert (text.x, text.y) == (EDGE + 5, TITLE + 7)


def test_a_long_legend_goes_on_in_further_rows_and_stays_inside():
    legend = [(f"class number {number}", (number, 0, 0)) for number in range(1, 12)]
    picture = grid([tile(200), tile(200)], "title", legend=legend)
    height, width, _ = picture.pixels.shape
    entries = {text.text: text for text in picture.texts if text.text.startswith("class")}
    assert len(entries) == 11
    for name, (text, colour) in zip(entries, [(entries[name], colour) for name, colour in legend], strict=True):
        assert text.x + text_width(name, text.size) <= width
        assert text.y < height
        assert picture.pixels[int(text.y), int(text.x) - 10].tolist() == list(colour)  # the swatch beside its name


def test_captions_that_are_too_long_are_shortened():
    (text,) = [text for text in grid([tile(1, [("x" * 100, (0, 0, 0))])], "title").texts if "x" in text.text]
    assert text_width(text.text, text.size) <= 100
