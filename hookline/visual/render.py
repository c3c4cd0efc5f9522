"""From a picture to finished pixels."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hookline.errors import suggest
from hookline.visual.canvas import Picture, Text, text_width
from hookline.visual.fonts import font, pieces

SHARES = {"left": 0.0, "center": 0.5, "right": 1.0}  # of a text's width that lies left of its place


def render(picture: Picture, backend: str = "pillow") -> np.ndarray:
    """The picture with its texts, [height, width, 3]; the backends differ in how they smooth letters."""
    return BACKENDS[backend](picture)


def check_backend(who: str, backend: str) -> None:
    if backend not in BACKENDS:
        raise ValueError(f"{who}: unknown backend {backend!r}{suggest(backend, BACKENDS)}")


def _pillow(picture: Picture) -> np.ndarray:
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture.pixels)
    draw = ImageDraw.Draw(image)
    for text in picture.texts:
        for x, piece, file in _placed(text):
            draw.text((x, text.y), piece, fill=text.colour, font=font(text.size, file), anchor="lm")
    return np.asarray(image)


def _matplotlib(picture: Picture) -> np.ndarray:
    """By the part of matplotlib that makes letters: a whole figure takes half a second to import, and ten times as long to draw."""
    pixels = picture.pixels.copy()
    for text in picture.texts:
        for x, piece, file in _placed(text):
            if piece.strip():
                _write(pixels, text, x, piece, file)
    return pixels


def _placed(text: Text) -> Iterator[tuple[float, str, Path]]:
    """The pieces of a text that each have one font, with their left ends."""
    x = text.x - SHARES[text.align] * text_width(text.text, text.size)
    for piece, file in pieces(text.text):
        yield x, piece, file
        x += font(text.size, file).getlength(piece)


def _write(pixels: np.ndarray, text: Text, x: float, piece: str, file: Path) -> None:
    letters = _letters(text.size, file)
    letters.set_text(piece)
    letters.draw_glyphs_to_bitmap(antialiased=True)
    ink = letters.get_image()
    ascent, descent = font(text.size).getmetrics()
    baseline = text.y + (ascent - descent) / 2
    left, top = round(x + letters.get_bitmap_offset()[0] / 64), round(baseline + letters.get_descent() / 64) - ink.shape[0]
    height, width = pixels.shape[:2]
    ink = ink[max(0, -top) : max(0, height - top), max(0, -left) : max(0, width - left), None] / 255
    under = pixels[max(0, top) : max(0, top) + ink.shape[0], max(0, left) : max(0, left) + ink.shape[1]]
    under[:] = (under + (np.array(text.colour) - under) * ink).round()


@functools.lru_cache(maxsize=16)
def _letters(size: int, file: Path) -> Any:
    from matplotlib.ft2font import FT2Font

    letters = FT2Font(str(file))
    letters.set_size(size, 72)  # points at as many dots per inch are pixels
    return letters


BACKENDS = {"matplotlib": _matplotlib, "pillow": _pillow}
