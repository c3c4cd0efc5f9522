"""The fonts that texts are written in: DejaVu Sans, which comes with matplotlib, and for East Asian letters one of the system's."""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import re
from pathlib import Path

from PIL import ImageFont

log = logging.getLogger("hookline")

# Chinese, Japanese and Korean letters, their punctuation, and the wide forms of others: what DejaVu Sans has nothing of.
EAST_ASIAN = re.compile(r"([\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef\U00020000-\U0003ffff]+)")
FILES = (
    *("NotoSansCJK-Regular.ttc", "NotoSansCJKsc-Regular.otf", "NotoSansSC-Regular.otf", "SourceHanSansSC-Regular.otf"),
    *("wqy-microhei.ttc", "wqy-zenhei.ttc", "DroidSansFallbackFull.ttf", "DroidSansFallback.ttf", "uming.ttc"),
    *("PingFang.ttc", "Hiragino Sans GB.ttc", "STHeiti Light.ttc", "Arial Unicode.ttf"),  # macOS
    *("msyh.ttc", "simhei.ttf", "simsun.ttc"),  # Windows
)
FOLDERS = (
    *("~/.local/share/fonts", "~/.fonts", "/usr/local/share/fonts", "/usr/share/fonts"),
    *("~/Library/Fonts", "/Library/Fonts", "/System/Library/Fonts"),
    *("~/AppData/Local/Microsoft/Windows/Fonts", "C:/Windows/Fonts"),
)


def pieces(text: str) -> list[tuple[str, Path]]:
    """A text in pieces, each with the file of the font that has its letters."""
    if EAST_ASIAN.search(text) is None or (other := east_asian_file()) is None:
        return [(text, font_file())]
    return [(piece, other if EAST_ASIAN.match(piece) else font_file()) for piece in EAST_ASIAN.split(text) if piece]


@functools.lru_cache(maxsize=32)
def font(size: int, file: Path | None = None) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(file or font_file()), size, layout_engine=ImageFont.Layout.BASIC)  # a third faster


@functools.lru_cache(maxsize=1024)
def letter_width(letter: str, size: int, file: Path) -> float:
    return font(size, file).getlength(letter)


@functools.cache
def font_file() -> Path:
    """DejaVu Sans, taken out of matplotlib, so that both backends write alike."""
    return matplotlib_folder() / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"


@functools.cache
def matplotlib_folder() -> Path:
    """Where matplotlib is installed, without importing it."""
    spec = importlib.util.find_spec("matplotlib")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@functools.cache
def east_asian_file() -> Path | None:
    """The first of the usual fonts with East Asian letters that is installed; where there is none, that is told, once."""
    found: dict[str, Path] = {}
    for folder in FOLDERS:
        for place, _, names in os.walk(os.path.expanduser(folder)):
            for name in names:
                found.setdefault(name, Path(place) / name)
    file = next((found[name] for name in FILES if name in found), None)
    if file is None:
        log.warning(
            "pictures: no font with Chinese, Japanese or Korean letters is installed, and boxes stand for them; install Noto Sans CJK"
        )
    return file
