"""From a picture to finished pixels."""

from __future__ import annotations

import functools
import importlib.util
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

from hookline.errors import suggest
from hookline.visual.canvas import Picture, Text, text_width
from hookline.visual.fonts import font, letter_width, matplotlib_folder, pieces

SHARES = {"left": 0.0, "center": 0.5, "right": 1.0}  # of a text's width that lies left of its place


class Ink(NamedTuple):
    """Letters as one picture of how much of each pixel they cover, to be put beside and above where the text begins."""

    cover: Image.Image
    left: float
    top: float


def render(picture: Picture, backend: str = "pillow") -> np.ndarray:
    """The picture with its texts, [height, width, 3]; the backends differ in how they smooth letters."""
    write = BACKENDS[backend]
    image = Image.fromarray(picture.pixels)
    for text in picture.texts:
        for x, piece, file in _placed(text):
            if piece.strip():
                ink = write(piece, text.size, file)
                image.paste(text.colour, (round(x + ink.left), round(text.y + ink.top)), ink.cover)
    return np.asarray(image)


def check_backend(who: str, backend: str) -> None:
    if backend not in BACKENDS:
        raise ValueError(f"{who}: unknown backend {backend!r}{suggest(backend, BACKENDS)}")


def _placed(text: Text) -> Iterator[tuple[float, str, Path]]:
    """The pieces of a text that each have one font, with their left ends."""
    x = text.x - SHARES[text.align] * text_width(text.text, text.size)
    for piece, file in pieces(text.text):
        yield x, piece, file
        x += text_width(piece, text.size)


# Names of layers and classes, and what stands below them, come again in picture after picture.
@functools.lru_cache(maxsize=1024)
def _pillow(piece: str, size: int, file: Path) -> Ink:
    """Put together from letters, because numbers differ from picture to picture, and drawing is what takes its time."""
    x, parts = 0.0, []
    for letter in piece:
        cover, left, top = _letter(letter, size, file)
        parts.append((cover, round(x) + left, top))
        x += letter_width(letter, size, file)
    left, top = min(left for _, left, _ in parts), min(top for _, _, top in parts)
    right, bottom = max(left + cover.shape[1] for cover, left, _ in parts), max(top + cover.shape[0] for cover, _, top in parts)
    whole = np.zeros((bottom - top, right - left), dtype=np.uint8)
    for cover, x, y in parts:
        place = whole[y - top : y - top + cover.shape[0], x - left : x - left + cover.shape[1]]
        np.maximum(place, cover, out=place)
    return Ink(Image.fromarray(whole), left, top)


@functools.lru_cache(maxsize=1024)
def _letter(letter: str, size: int, file: Path) -> tuple[np.ndarray, int, int]:
    cover, (left, top) = font(size, file).getmask2(letter, "L", anchor="lm")
    width, height = cover.size
    return np.frombuffer(bytes(cover), dtype=np.uint8).reshape(height, width), left, top


@functools.lru_cache(maxsize=1024)
def _matplotlib(piece: str, size: int, file: Path) -> Ink:
    """By the part of matplotlib that makes letters: a whole figure takes half a second to import, and ten times as long to draw."""
    letters = _letters(size, file)
    letters.set_text(piece)
    letters.draw_glyphs_to_bitmap(antialiased=True)
    cover = letters.get_image()
    ascent, descent = font(size).getmetrics()
    top = (ascent - descent) / 2 + letters.get_descent() / 64 - cover.shape[0]
    return Ink(Image.fromarray(cover), letters.get_bitmap_offset()[0] / 64, top)


@functools.lru_cache(maxsize=16)
def _letters(size: int, file: Path) -> Any:
    letters = _ft2font().FT2Font(str(file))
    letters.set_size(size, 72)  # points at as many dots per inch are pixels
    return letters


@functools.cache
def _ft2font() -> Any:
    """matplotlib's compiled module of letters, without the package around it, whose import takes twenty times as long.

    A later import of the package finds the same module.
    """
    spec = PathFinder.find_spec("matplotlib.ft2font", [str(matplotlib_folder())])
    if spec is None or spec.loader is None or "matplotlib" in sys.modules:
        return importlib.import_module("matplotlib.ft2font")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BACKENDS = {"matplotlib": _matplotlib, "pillow": _pillow}
