"""From a picture to finished pixels."""

from __future__ import annotations

import numpy as np

from hookline.errors import suggest
from hookline.visual.canvas import Picture, font

DPI = 100


def render(picture: Picture, backend: str = "pillow") -> np.ndarray:
    """The picture with its texts, [height, width, 3]; matplotlib smooths text better, pillow is several times as fast."""
    return BACKENDS[backend](picture)


def check_backend(who: str, backend: str) -> None:
    if backend not in BACKENDS:
        raise ValueError(f"{who}: unknown backend {backend!r}{suggest(backend, BACKENDS)}")


def _pillow(picture: Picture) -> np.ndarray:
    from PIL import Image, ImageDraw

    image = Image.fromarray(picture.pixels)
    draw = ImageDraw.Draw(image)
    anchors = {"left": "lm", "center": "mm", "right": "rm"}
    for text in picture.texts:
        draw.text((text.x, text.y), text.text, fill=text.colour, font=font(text.size), anchor=anchors[text.align])
    return np.asarray(image)


def _matplotlib(picture: Picture) -> np.ndarray:
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # half a second to import
    from matplotlib.figure import Figure

    height, width, _ = picture.pixels.shape
    figure = Figure(figsize=((width + 0.01) / DPI, (height + 0.01) / DPI), dpi=DPI)  # it rounds down
    canvas = FigureCanvasAgg(figure)
    figure.figimage(picture.pixels, origin="upper")
    for text in picture.texts:
        colour = tuple(part / 255 for part in text.colour)
        place = text.x / width, 1 - text.y / height
        points = text.size * 72 / DPI
        figure.text(*place, text.text, parse_math=False, ha=text.align, va="center", fontsize=points, color=colour)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()  # type: ignore[no-untyped-call]


BACKENDS = {"matplotlib": _matplotlib, "pillow": _pillow}
