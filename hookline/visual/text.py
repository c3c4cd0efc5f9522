"""Fonts and text metrics. DejaVu Sans is bundled; CJK characters need a font of the system.

A character that no font has is written as an escape such as `\\u732b`, so that names stay distinct.
"""

from __future__ import annotations

import functools
import logging
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import ImageFont

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

log = logging.getLogger("hookline")

DEJAVU_SANS = str(Path(__file__).parent / "fonts" / "DejaVuSans.ttf")

# DejaVu Sans has these: Latin letters, and the marks of our own captions. To look up other
# characters, matplotlib must be imported.
COMMON = re.compile("[ -~\u00a0-\u024f×…→✓✗]*")

# Unicode categories of characters that break a line or cannot be encoded.
CONTROL_CATEGORIES = ("Cc", "Cs", "Zl", "Zp")

# Files of common CJK fonts on Linux, macOS and Windows. Pillow knows the font folders.
CJK_FONTS = (
    "NotoSansCJK-Regular.ttc",
    "NotoSansCJKsc-Regular.otf",
    "NotoSansSC-Regular.otf",
    "SourceHanSansSC-Regular.otf",
    "wqy-microhei.ttc",
    "wqy-zenhei.ttc",
    "DroidSansFallbackFull.ttf",
    "DroidSansFallback.ttf",
    "uming.ttc",
    "PingFang.ttc",
    "Hiragino Sans GB.ttc",
    "STHeiti Light.ttc",
    "Arial Unicode.ttf",
    "msyh.ttc",
    "simhei.ttf",
    "simsun.ttc",
)


def split_by_font(text: str) -> list[tuple[str, str]]:
    """Split a text into runs of characters, each with the file of a font that has them.

    Characters that no font has are replaced by escapes.
    """
    if COMMON.fullmatch(text):
        return [(text, DEJAVU_SANS)]
    runs: list[tuple[str, str]] = []
    for character in text:
        file = None if _is_control(character) else find_font(character)
        if file is None:
            file = DEJAVU_SANS
            character = character.encode("unicode_escape").decode()
        if runs and runs[-1][1] == file:
            character = runs.pop()[0] + character
        runs.append((character, file))
    return runs


def has_missing_characters(text: str) -> bool:
    """Return whether a text has characters that are drawn as escapes for want of a font."""
    if COMMON.fullmatch(text):
        return False
    return any(find_font(each) is None for each in text if not _is_control(each))


@functools.lru_cache(maxsize=4096)
def find_font(character: str) -> str | None:
    """Return the file of a font that has a character, None if there is none."""
    if _has_glyph(DEJAVU_SANS, character):
        return DEJAVU_SANS
    cjk_font = find_cjk_font()
    if cjk_font is not None and _has_glyph(cjk_font, character):
        return cjk_font
    return None


@functools.cache
def find_cjk_font() -> str | None:
    """Return the file of an installed CJK font. Log a warning, once, if there is none."""
    for name in CJK_FONTS:
        try:
            return str(ImageFont.truetype(name).path)
        except OSError:
            continue
    log.warning(
        "pictures: no font for Chinese, Japanese and Korean text is installed, so escapes such as"
        " \\u732b are drawn instead; install Noto Sans CJK"
    )
    return None


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in CONTROL_CATEGORIES


def _has_glyph(file: str, character: str) -> bool:
    return _open_face(file).get_char_index(ord(character)) != 0


@functools.cache
def _open_face(file: str) -> FT2Font:
    from matplotlib.ft2font import FT2Font

    return FT2Font(file)


@functools.lru_cache(maxsize=64)
def load_font(file: str, size: int) -> ImageFont.FreeTypeFont:
    """Load a font. The basic layout looks the same whether or not Pillow was built with Raqm."""
    return ImageFont.truetype(file, size, layout_engine=ImageFont.Layout.BASIC)


def text_width(text: str, size: int) -> float:
    """Return the width of a text in pixels."""
    width = 0.0
    for run, file in split_by_font(text):
        width += load_font(file, size).getlength(run)
    return width


def shorten(text: str, size: int, width: float) -> str:
    """Return the text, cut and with an ellipsis if it is wider than `width` pixels."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text}…"


def wrap(text: str, size: int, width: float) -> list[str]:
    """Break a text between words into lines that are at most `width` pixels wide."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(shorten(word, size, width))
    return lines
