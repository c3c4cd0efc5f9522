"""Colours: palettes that are distinct for colour-blind eyes too, and scales for heat maps."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

Colour = tuple[int, int, int]

BLACK, WHITE, GREY = (0, 0, 0), (255, 255, 255), (128, 128, 128)
RIGHT, WRONG = (0, 114, 178), (193, 18, 31)  # blue and red, because red and green are one to many eyes

# Okabe and Ito's palette without black, in an order that keeps neighbours apart.
OKABE_ITO: tuple[Colour, ...] = ((230, 159, 0), (86, 180, 233), (0, 158, 115), (213, 94, 0), (204, 121, 167), (240, 228, 66), (0, 114, 178))

# Each 32nd part of two scales of matplotlib, so that a heat map does not need its import of half a second.
SCALES = {
    "viridis": "440154470d6048186a482374472d7b4537814240863e49893b528b375b8d33638d2f6b8e2c728e297a8e26828e23898e21918c1f988b1fa08822a785"
    "28ae8032b67a3fbc734ec36b5ec96270cf5784d44b98d83eaddc30c2df23d8e219ece51bfde725",
    "inferno": "0000040403120b0724150b37210c4a2f0a5b3d09654a0c6b57106e64156e71196e7d1e6d8a226a972766a32c61b0315bbc3754c73e4cd24644db503b"
    "e45a31eb6628f1731df68013f98e09fb9d07fcac11fbbc21f9cb35f5db4cf2ea69f3f68afcffa4",
}


def parse_colour(value: Any) -> Colour:
    """A colour from `"#d55e00"`, a name such as `"red"`, or three numbers from 0 to 255."""
    if isinstance(value, str):
        from PIL import ImageColor

        try:
            return ImageColor.getrgb(value)[:3]
        except ValueError:
            raise ValueError(f"unknown colour {value!r}; give a name, '#rrggbb' or [red, green, blue] from 0 to 255") from None
    numbers = list(value) if isinstance(value, (list, tuple)) else []
    if len(numbers) != 3 or not all(isinstance(number, int) and 0 <= number <= 255 for number in numbers):
        raise ValueError(f"unknown colour {value!r}; give a name, '#rrggbb' or [red, green, blue] from 0 to 255")
    return (numbers[0], numbers[1], numbers[2])


def colour_of(label: int, palette: Sequence[Colour] = ()) -> Colour:
    """The colour of a class; when the palette is used up its colours come again, darker and then lighter."""
    colours = palette or OKABE_ITO
    turn, place = divmod(int(label), len(colours))
    shade = np.array(colours[place], dtype=float)
    if turn % 3 == 1:
        shade = shade * 0.6
    elif turn % 3 == 2:
        shade = 255 - (255 - shade) * 0.5
    return tuple(int(part) for part in shade.round())  # type: ignore[return-value]


def ink_on(background: Colour) -> Colour:
    """Black or white, whichever is easier to read on a colour."""
    red, green, blue = ((part / 255) ** 2.2 for part in background)
    return BLACK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 else WHITE


def heat_colours(values: np.ndarray, scale: str = "viridis") -> np.ndarray:
    """Values from 0 to 1 as colours [..., 3]; what is not a number is white."""
    places = np.where(np.isfinite(values), np.clip(values, 0, 1) * 255, 256).astype(np.uint16)
    return np.take(_table(scale), places, axis=0)


@functools.cache
def _table(scale: str) -> np.ndarray:
    """256 colours from cold to hot, and white."""
    anchors = np.frombuffer(bytes.fromhex(SCALES[scale]), dtype=np.uint8).reshape(-1, 3)
    places = np.linspace(0, len(anchors) - 1, 256)
    colours = [np.interp(places, range(len(anchors)), anchors[:, part]) for part in range(3)]
    return np.vstack([np.stack(colours, axis=1), [WHITE]]).round().astype(np.uint8)
