"""Colors: a palette for classes, heat maps, and parsing of colors from a config."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import ImageColor

Color = tuple[int, int, int]

BLACK = (0, 0, 0)
WHITE = (255, 255, 255)

COLOR_FORMATS = "must be a color name, '#rrggbb' or [red, green, blue] from 0 to 255"

# Blue and red: many readers cannot distinguish red from green.
RIGHT = (0, 114, 178)
WRONG = (193, 18, 31)

# The palette of Okabe and Ito without black, safe for color-blind readers. Neighbors differ.
OKABE_ITO: tuple[Color, ...] = (
    (230, 159, 0),
    (86, 180, 233),
    (0, 158, 115),
    (213, 94, 0),
    (204, 121, 167),
    (240, 228, 66),
    (0, 114, 178),
)


def parse_color(value: Any) -> Color:
    """Return a color given as `"#d55e00"`, as a name such as `"red"`, or as three bytes."""
    if isinstance(value, str):
        try:
            return ImageColor.getrgb(value)[:3]
        except ValueError:
            raise ValueError(COLOR_FORMATS) from None
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise ValueError(COLOR_FORMATS)
    for part in value:
        if not isinstance(part, int) or not 0 <= part <= 255:
            raise ValueError(COLOR_FORMATS)
    return (value[0], value[1], value[2])


def class_color(label: int, palette: Sequence[Color] = ()) -> Color:
    """Return the color of a class. A palette that is used up repeats, darker and then lighter."""
    colors = palette or OKABE_ITO
    repetition, index = divmod(int(label), len(colors))
    color = np.array(colors[index], dtype=float)
    if repetition % 3 == 1:
        color = color * 0.6
    elif repetition % 3 == 2:
        color = 255 - (255 - color) * 0.5
    red, green, blue = color.round().astype(int).tolist()
    return (red, green, blue)


def contrasting_color(background: Color) -> Color:
    """Return black or white, whichever is easier to read on a background."""
    linear = (np.array(background) / 255) ** 2.2
    luminance = linear @ (0.2126, 0.7152, 0.0722)
    return BLACK if luminance > 0.18 else WHITE


def heat_colors(values: np.ndarray, colormap: str = "viridis") -> np.ndarray:
    """Return the colors [..., 3] of values from 0 to 1 in a matplotlib colormap. NaN is white."""
    import matplotlib

    colors = matplotlib.colormaps[colormap].with_extremes(bad="white")
    return np.asarray(colors(np.clip(values, 0, 1), bytes=True))[..., :3]
