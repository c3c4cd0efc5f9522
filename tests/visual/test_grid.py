"""Layout of tiles, captions and legends."""

from __future__ import annotations

import numpy as np
import pytest

from hookline.visual.backends import render
from hookline.visual.canvas import Raster, Rectangle, Text
from hookline.visual.colors import heat_colors
from hookline.visual.grid import (
    GAP,
    MARGIN,
    MAX_CAPTION_WIDTH,
    TITLE_HEIGHT,
    ColorScale,
    Tile,
    draw_grid,
)
from hookline.visual.text import text_width

BLACK = (0, 0, 0)


def tile(value, captions=(("caption", BLACK),), size=100, **options):
    return Tile(np.full((size, size, 3), value, dtype=np.uint8), captions, **options)


def texts(canvas):
    return {shape.text: shape for shape in canvas.shapes if isinstance(shape, Text)}


def test_the_tiles_of_a_sample_stand_side_by_side():
    canvas = draw_grid([tile(value) for value in (10, 20, 30, 40)], "title", tiles_per_sample=2)
    positions = {
        shape.pixels[0, 0, 0]: (shape.x, shape.y)
        for shape in canvas.shapes
        if isinstance(shape, Raster)
    }
    assert positions[10] == (MARGIN, TITLE_HEIGHT)
    assert positions[20] == (MARGIN + 100 + GAP, TITLE_HEIGHT)
    assert positions[30][0] == MARGIN
    assert positions[30][1] > TITLE_HEIGHT + 100


@pytest.mark.parametrize("backend", ["pillow", "matplotlib"])
def test_nothing_covers_a_tile(backend):
    canvas = draw_grid([tile(value) for value in (10, 20, 30)], "title")
    pixels = render(canvas, backend)
    for value in (10, 20, 30):
        assert (pixels == value).all(-1).sum() >= 100 * 100  # texts have gray pixels, too


@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 12, 16, 30])
def test_a_grid_is_about_square_and_holds_all_tiles(count):
    canvas = draw_grid([tile(10) for _ in range(count)], "title")
    rasters = [shape for shape in canvas.shapes if isinstance(shape, Raster)]
    assert len({(raster.x, raster.y) for raster in rasters}) == count
    assert 0.3 < canvas.width / canvas.height < 3


def test_shapes_of_a_tile_move_with_it():
    canvas = draw_grid([tile(10, shapes=[Text(5, 7, "inside")])], "title")
    text = texts(canvas)["inside"]
    assert (text.x, text.y) == (MARGIN + 5, TITLE_HEIGHT + 7)


def test_a_frame_lies_around_its_tile():
    canvas = draw_grid([tile(10, frame=(9, 8, 7))], "title")
    pixels = render(canvas)
    rows, columns = np.nonzero((pixels == (9, 8, 7)).all(-1))
    assert (columns.min(), rows.min()) == (MARGIN - 3, TITLE_HEIGHT - 3)
    assert (columns.max(), rows.max()) == (MARGIN + 102, TITLE_HEIGHT + 102)
    assert (pixels == 10).all(-1).sum() == 100 * 100


def test_a_long_legend_continues_in_further_rows_and_stays_inside():
    legend = [(f"class number {number}", (number, 0, 0)) for number in range(1, 12)]
    canvas = draw_grid([tile(200), tile(200)], "title", legend=legend)
    swatches = {shape.color: shape for shape in canvas.shapes if isinstance(shape, Rectangle)}
    for name, color in legend:
        text = texts(canvas)[name]
        swatch = swatches[color]
        assert text.x + text_width(name, text.size) <= canvas.width
        assert text.y < canvas.height
        assert swatch.y < text.y < swatch.y + swatch.height
        assert swatch.x + swatch.width < text.x
    assert len({swatch.y for swatch in swatches.values()}) > 1


def test_a_scale_has_a_color_bar_with_its_meaning_and_the_names_of_its_ends():
    plain = draw_grid([tile(10), tile(10)], "title")
    scale = ColorScale("heat", "cold", "hot", "viridis")
    canvas = draw_grid([tile(10), tile(10)], "title", scale=scale)
    assert canvas.height > plain.height
    bar = canvas.shapes[-3]
    assert isinstance(bar, Raster)
    ends = heat_colors(np.array([0.0, 1.0]), "viridis")
    assert np.array_equal(bar.pixels[0, [0, -1]], ends)
    found = texts(canvas)
    assert found["cold"].x < bar.x < bar.x + bar.pixels.shape[1] < found["hot"].x < found["heat"].x


def test_a_lead_tile_stands_on_the_left_of_the_others():
    canvas = draw_grid([tile(value) for value in (10, 20, 30, 40)], "title", lead=tile(200))
    rasters = [shape for shape in canvas.shapes if isinstance(shape, Raster)]
    lead, *others = rasters
    assert (lead.x, lead.y) == (MARGIN, TITLE_HEIGHT)
    assert lead.pixels[0, 0, 0] == 200
    assert all(raster.x > lead.x + 100 for raster in others)
    assert max(raster.x for raster in others) + 100 == canvas.width - MARGIN


@pytest.mark.parametrize("text", ["title", "caption", "scale"])
def test_a_picture_of_one_tile_has_room_for_its_texts(text):
    long = "twenty-five letters fit in"
    parts = {"title": "a", "caption": "b", "scale": "c", text: long}
    canvas = draw_grid(
        [tile(1, [(parts["caption"], BLACK)])], parts["title"], scale=ColorScale(parts["scale"])
    )
    shape = texts(canvas)[long]
    assert text_width(long, shape.size) <= canvas.width


def test_a_caption_that_is_too_long_is_shortened():
    canvas = draw_grid([tile(1, [("x" * 100, BLACK)])], "title")
    caption = next(text for text in texts(canvas) if text.startswith("x"))
    assert text_width(caption, texts(canvas)[caption].size) <= MAX_CAPTION_WIDTH
    assert canvas.width == MAX_CAPTION_WIDTH + 2 * MARGIN
