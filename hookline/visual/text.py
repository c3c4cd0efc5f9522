"""Fonts and text metrics. DejaVu Sans is bundled; CJK characters need a font of the system."""

from __future__ import annotations

import functools
import logging
import re
from pathlib import Path

from PIL import ImageFont

log = logging.getLogger("hookline")

DEJAVU_SANS = str(Path(__file__).parent / "fonts" / "DejaVuSans.ttf")

# Chinese, Japanese and Korean characters, which DejaVu Sans lacks.
CJK = re.compile(
    r"([\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
    r"\U00020000-\U0003ffff]+)"
)

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
    """Split a text into runs of characters, each with the file of a font that has them."""
    if CJK.search(text) is None:
        return [(text, DEJAVU_SANS)]
    cjk_font = find_cjk_font() or DEJAVU_SANS
    runs = []
    for run in CJK.split(text):
        if run:
            runs.append((run, cjk_font if CJK.match(run) else DEJAVU_SANS))
    return runs


@functools.cache
def find_cjk_font() -> str | None:
    """Return the file of an installed CJK font. Log a warning, once, if there is none."""
    for name in CJK_FONTS:
        try:
            return str(ImageFont.truetype(name).path)
        except OSError:
            continue
    log.warning(
        "pictures: no font for Chinese, Japanese and Korean text is installed, so boxes are drawn"
        " instead; install Noto Sans CJK"
    )
    return None


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
