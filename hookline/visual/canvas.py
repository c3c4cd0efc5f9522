"""Pictures as pixels with texts on them. Pixels are set here, exactly; texts wait for the backend that renders them."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from hookline.visual.colours import BLACK, WHITE, Colour, ink_on
from hookline.visual.fonts import letter_width, pieces

Align = Literal["left", "center", "right"]


@dataclass
class Text:
    """A line of text; `x` is its left end, middle or right end, `y` its middle."""

    x: float
    y: float
    text: str
    size: int = 12
    colour: Colour = BLACK
    align: Align = "left"


@dataclass
class Picture:
    """What is to be seen, before a backend renders it."""

    pixels: np.ndarray  # [height, width, 3], uint8
    texts: list[Text] = field(default_factory=list)

    def write(self, x: float, y: float, text: str, size: int = 12, colour: Colour = BLACK, align: Align = "left") -> None:
        self.texts.append(Text(x, y, text, size, colour, align))

    def fill(self, left: float, top: float, right: float, bottom: float, colour: Colour) -> None:
        """Fill a rectangle; right and bottom are outside of it. Parts beyond the picture are left out."""
        rows, columns = _span(top, bottom), _span(left, right)
        self.pixels[rows, columns] = colour

    def outline(self, left: float, top: float, right: float, bottom: float, colour: Colour, thickness: int = 1) -> None:
        """A frame inside of a rectangle."""
        across, down = min(thickness, max(1, round(right - left))), min(thickness, max(1, round(bottom - top)))
        self.fill(left, top, right, top + down, colour)
        self.fill(left, bottom - down, right, bottom, colour)
        self.fill(left, top, left + across, bottom, colour)
        self.fill(right - across, top, right, bottom, colour)

    def paste(self, pixels: np.ndarray, left: int, top: int) -> None:
        self.pixels[top : top + pixels.shape[0], left : left + pixels.shape[1]] = pixels

    def label(self, left: float, top: float, text: str, colour: Colour, size: int = 11, ink: Colour | None = None) -> None:
        """Text on a plate of a colour, legible whatever is behind it."""
        width, height = label_size(text, size)
        self.fill(left, top, left + width, top + height, colour)
        self.write(left + 3, top + height / 2, text, size, ink_on(colour) if ink is None else ink)


def blank(height: int, width: int, colour: Colour = WHITE) -> Picture:
    pixels = np.empty((height, width, 3), dtype=np.uint8)
    pixels[:] = np.full((width, 3), colour, dtype=np.uint8)  # row by row: pixel by pixel takes twenty times as long
    return Picture(pixels)


def label_size(text: str, size: int = 11) -> tuple[int, int]:
    """Width and height of the plate of a label."""
    return round(text_width(text, size)) + 6, size + 4


@functools.lru_cache(maxsize=1024)
def text_width(text: str, size: int) -> float:
    return sum(letter_width(letter, size, file) for piece, file in pieces(text) for letter in piece)


def shorten(text: str, size: int, width: float) -> str:
    """The text, or as much of it as fits, with an ellipsis."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text}…"


def _span(start: float, end: float) -> slice:
    return slice(max(0, round(start)), max(0, round(end)))
