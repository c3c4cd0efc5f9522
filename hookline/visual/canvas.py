"""A canvas: a list of images, rectangles and texts, which a backend draws (see `backends.py`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from hookline.visual.colors import BLACK, WHITE, Color


@dataclass(frozen=True)
class Raster:
    """An image of bytes [H, W, 3] with its upper left corner at (x, y)."""

    x: float
    y: float
    pixels: np.ndarray


@dataclass(frozen=True)
class Rectangle:
    """A filled rectangle, or a frame inside its bounds, with its upper left corner at (x, y).

    Args:
        thickness: Thickness of the frame in pixels; 0 fills the rectangle.
    """

    x: float
    y: float
    width: float
    height: float
    color: Color
    thickness: int = 0


@dataclass(frozen=True)
class Text:
    """A line of text.

    Args:
        x: The left end, the center or the right end of the text, depending on `align`.
        y: The middle of the line.
        size: Font size in pixels.
    """

    x: float
    y: float
    text: str
    size: int = 11
    color: Color = BLACK
    align: Literal["left", "center", "right"] = "left"


Shape = Raster | Rectangle | Text


@dataclass
class Canvas:
    """Shapes in pixel coordinates, in drawing order. Parts outside the canvas are not visible."""

    height: int
    width: int
    background: Color = WHITE
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        """Add shapes on top of the others."""
        self.shapes.extend(shapes)

    def add_moved(self, shapes: Iterable[Shape], x: float, y: float) -> None:
        """Add shapes, moved to the right by `x` and down by `y`."""
        for shape in shapes:
            self.shapes.append(replace(shape, x=shape.x + x, y=shape.y + y))
