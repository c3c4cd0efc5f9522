"""Text metrics, and CJK characters, which are drawn with a font of the system."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen

from hookline.visual.backends import render
from hookline.visual.canvas import Canvas, Text
from hookline.visual.text import (
    COMMON,
    DEJAVU_SANS,
    find_cjk_font,
    find_font,
    has_missing_characters,
    shorten,
    split_by_font,
    text_width,
    wrap,
)

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
    clear_caches()
    yield folder
    clear_caches()


def clear_caches():
    find_cjk_font.cache_clear()
    find_font.cache_clear()


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
def test_without_a_cjk_font_escapes_are_drawn_and_a_warning_is_logged_once(
    font_folder, backend, caplog
):
    assert split_by_font("猫 a 한") == [(r"\u732b a \ud55c", DEJAVU_SANS)]
    with_font = draw("cat", backend, 8)
    assert draw("猫", backend, 8).sum() > with_font.sum()
    assert not np.array_equal(draw("猫", backend, 8), draw("狗", backend, 8))
    assert text_width("猫", 20) == text_width(r"\u732b", 20)
    assert len(caplog.messages) == 1
    assert "install Noto Sans CJK" in caplog.messages[0]


@both_backends
@pytest.mark.parametrize("width", [90, 600])
def test_a_picture_without_the_fonts_for_its_texts_says_so(font_folder, backend, width):
    canvas = Canvas(40, width)
    canvas.add(Text(10, 20, "猫"))
    plain = Canvas(40, width)
    plain.add(Text(10, 20, r"\u732b"))
    pixels = render(canvas, backend)
    assert np.array_equal(pixels[:40], render(plain, backend))
    assert (pixels[40:] < 100).all(-1).any()
    assert len(pixels) >= 60


@both_backends
def test_a_picture_with_the_fonts_for_its_texts_has_no_note(font_folder, backend):
    install_cjk_font(font_folder)
    canvas = Canvas(40, 120)
    canvas.add(Text(10, 20, "猫"))
    assert render(canvas, backend).shape == (40, 120, 3)


@both_backends
@pytest.mark.parametrize("text", ["狗", "แมว", "बिल्ली"])
def test_a_character_that_the_cjk_font_lacks_is_escaped(font_folder, backend, text):
    install_cjk_font(font_folder)
    assert has_missing_characters(text)
    ((run, file),) = split_by_font(text)
    assert run == text.encode("unicode_escape").decode()
    assert file == DEJAVU_SANS
    assert draw(text, backend).any()


@both_backends
@pytest.mark.parametrize("text", ["cat\ndog", "cat\u2028dog", "cat\udc80", "cat\x00"])
def test_control_characters_are_escaped_without_a_note(backend, text):
    assert not has_missing_characters(text)
    assert split_by_font(text) == [(text.encode("unicode_escape").decode(), DEJAVU_SANS)]
    assert draw(text, backend).shape == (40, 120)


def test_the_bundled_font_has_the_common_characters():
    characters = [chr(code) for code in range(0x3000) if COMMON.fullmatch(chr(code))]
    assert len(characters) > 500
    assert {find_font(character) for character in characters} == {DEJAVU_SANS}


QUIET = """
from hookline.visual.backends import render
from hookline.visual.canvas import Canvas, Text
from hookline.visual.schedules import schedule_figure

canvas = Canvas(30, 90)
canvas.add(Text(5, 15, "猫 แมว"))
for backend in ("pillow", "matplotlib"):
    render(canvas, backend)
curves = {"lr": {"头": [0.1, 0.2], "身": [0.1, 0.1]}}
schedule_figure(curves, "实验.yaml").savefig("lr.png")
"""


def test_missing_fonts_cause_no_warnings_of_libraries(font_folder, tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", QUIET],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    (line,) = done.stderr.splitlines()
    assert line.startswith("pictures: no font for Chinese")


def test_a_text_without_cjk_characters_needs_no_font_of_the_system(font_folder):
    assert text_width("Grüße, ✓ 98% × 3 → …", 12) > 0
    assert find_cjk_font.cache_info().misses == 0
    assert not has_missing_characters("Привет, Ελλάδα ∑ ½")
    assert find_cjk_font.cache_info().misses == 0


def test_a_text_that_fits_is_not_shortened():
    assert shorten("cat", 11, 100) == "cat"


def test_a_long_text_is_shortened_to_its_room():
    short = shorten("an extraordinarily long name", 11, 80)
    assert short.startswith("an extra")
    assert short.endswith("…")
    assert text_width(short, 11) <= 80


def test_a_text_is_wrapped_between_words():
    lines = wrap("one two three four", 11, text_width("one two", 11) + 1)
    assert lines == ["one two", "three", "four"]


def test_a_word_that_is_too_long_for_a_line_is_shortened():
    (line,) = wrap("extraordinarily", 11, 40)
    assert line.endswith("…")
    assert text_width(line, 11) <= 40
