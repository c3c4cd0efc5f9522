"""Text metrics, and CJK characters, which are drawn with a font of the system."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from hookline.visual.backends import render
from hookline.visual.canvas import Canvas, Text
from hookline.visual.text import find_cjk_font, shorten, text_width

both_backends = pytest.mark.parametrize("backend", ["pillow", "matplotlib"])


@pytest.fixture
def font_folder(tmp_path, monkeypatch):
    """The only folder that the system has fonts in."""
    if sys.platform != "linux":
        pytest.skip("the folders of fonts are set by environment variables on Linux only")
    folder = tmp_path / "fonts"
    folder.mkdir()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_DIRS", str(tmp_path / "absent"))
    find_cjk_font.cache_clear()
    yield folder
    find_cjk_font.cache_clear()


def install_cjk_font(folder):
    """Install a font in which 猫 is a square as high and wide as a character can be."""
    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 1000), (1000, 1000), (1000, 0)):
        pen.lineTo(corner)
    pen.closePath()
    builder = FontBuilder(1000)
    builder.setupGlyphOrder([".notdef", "cat"])
    builder.setupCharacterMap({ord("猫"): "cat"})
    builder.setupGlyf({".notdef": TTGlyphPen(None).glyph(), "cat": pen.glyph()})
    builder.setupHorizontalMetrics({".notdef": (1000, 0), "cat": (1000, 0)})
    builder.setupHorizontalHeader(ascent=1000, descent=0)
    builder.setupNameTable({"familyName": "Squares", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    (folder / "truetype").mkdir()
    builder.save(folder / "truetype" / "wqy-microhei.ttc")


def draw(text, backend, size=20):
    canvas = Canvas(40, 120)
    canvas.add(Text(10, 20, text, size))
    return render(canvas, backend).max(-1) < 128


def crop(ink):
    """Cut off the empty margins."""
    rows = np.flatnonzero(ink.any(1))
    columns = np.flatnonzero(ink.any(0))
    return ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


@both_backends
def test_cjk_characters_are_drawn_with_the_font_of_the_system(font_folder, backend, caplog):
    install_cjk_font(font_folder)
    mixed = draw("ab 猫 c✓", backend)
    left = round(10 + text_width("ab ", 20))
    square = mixed[:, left : left + 20]
    assert square.sum() == pytest.approx(20 * 20, abs=45)
    beside = crop(mixed[:, : left - 2])
    alone = crop(draw("ab", backend))
    assert beside.shape == alone.shape
    assert (beside != alone).mean() < 0.25  # matplotlib places texts at fractions of a pixel
    assert mixed[:, left + 22 :].any()
    assert not caplog.messages


def test_the_width_of_a_text_in_two_fonts_is_the_sum_of_its_parts(font_folder):
    install_cjk_font(font_folder)
    parts = text_width("ab ", 20) + 20 + text_width(" c✓", 20)
    assert text_width("ab 猫 c✓", 20) == pytest.approx(parts)


@both_backends
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_without_a_cjk_font_a_warning_is_logged_once_and_boxes_are_drawn(
    font_folder, backend, caplog
):
    assert draw("猫 a 한 ひ", backend).any()
    assert draw("猫", backend).any()
    assert len(caplog.messages) == 1
    assert "install Noto Sans CJK" in caplog.messages[0]


def test_a_text_without_cjk_characters_needs_no_font_of_the_system(font_folder):
    assert text_width("Grüße, ✓ 98% × 3 → …", 12) > 0
    assert find_cjk_font.cache_info().misses == 0


def test_a_text_that_fits_is_not_shortened():
    assert shorten("cat", 11, 100) == "cat"


def test_a_long_text_is_shortened_to_its_room():
    short = shorten("an extraordinarily long name", 11, 80)
    assert short.startswith("an extra")
    assert short.endswith("…")
    assert text_width(short, 11) <= 80
