"""East Asian letters are written with a font of the system that has them."""

from __future__ import annotations

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from hookline.visual import fonts
from hookline.visual.canvas import blank, label_size, text_width
from hookline.visual.render import render

BACKENDS = pytest.mark.parametrize("backend", ["pillow", "matplotlib"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the system's fonts are."""
    monkeypatch.setattr(fonts, "FOLDERS", (str(tmp_path / "absent"), str(tmp_path)))
    for cached in (fonts.east_asian_file, fonts.font, text_width):
        cached.cache_clear()
    yield tmp_path
    for cached in (fonts.east_asian_file, fonts.font, text_width):
        cached.cache_clear()


def install(folder):
    """A font in which 猫 is a square as high and wide as the letters may be."""
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


def drawn(text, backend, size=20):
    picture = blank(40, 120)
    picture.write(10, 20, text, size)
    return render(picture, backend).max(-1) < 128


@BACKENDS
def test_letters_that_the_own_font_lacks_are_the_systems_and_the_others_stay(folder, backend, caplog):
    install(folder)
    mixed, alone = drawn("ab 猫 c✓", backend), drawn("ab", backend)
    left = round(10 + text_width("ab ", 20))
    square = mixed[:, left : left + 20]
    assert square.sum() == pytest.approx(400, abs=45)  # all of its 20 times 20 pixels
    assert np.array_equal(mixed[:, : left - 2], alone[:, : left - 2])
    assert mixed[:, left + 22 :].any()
    assert text_width("ab 猫 c✓", 20) == pytest.approx(text_width("ab ", 20) + 20 + text_width(" c✓", 20))
    assert label_size("猫猫", 12)[0] == 24 + 6
    assert not caplog.messages


@BACKENDS
def test_where_no_font_has_them_that_is_told_once_and_the_picture_is_drawn(folder, backend, caplog):
    for _ in range(2):
        assert drawn("猫 a 한 ひ", backend).any()
    (message,) = caplog.messages
    assert "install Noto Sans CJK" in message


def test_a_text_without_such_letters_looks_for_no_font(folder):
    assert text_width("Grüße, ✓ 98% × 3 → …", 12) > 0
    assert fonts.east_asian_file.cache_info().misses == 0
