"""The backends that turn a canvas into pixels: Pillow and matplotlib."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from hookline.visual.canvas import Canvas, Raster, Rectangle, Text
from hookline.visual.colors import BLACK
from hookline.visual.text import (
    DEJAVU_SANS,
    has_missing_characters,
    load_font,
    split_by_font,
    text_width,
    wrap,
)

ALIGNMENT_SHIFT = {"left": 0.0, "center": 0.5, "right": 1.0}  # in widths of the text
DPI = 64  # a power of two: sizes in inches have no rounding errors
POINTS_PER_PIXEL = 72 / DPI

NOTE = (
    "Missing font: each \\u… is one character. Install a font that has it, such as Noto Sans CJK "
    "for Chinese, Japanese and Korean."
)
NOTE_SIZE = 11
NOTE_LINE_HEIGHT = 16
NOTE_MARGIN = 10
NOTE_COLOR = (255, 236, 179)


def render(canvas: Canvas, backend: str = "pillow") -> np.ndarray:
    """Draw a canvas with a backend and return its pixels, bytes [H, W, 3].

    A note below the picture explains escapes of characters that no installed font has.
    """
    texts = [shape.text for shape in canvas.shapes if isinstance(shape, Text)]
    if any(has_missing_characters(text) for text in texts):
        canvas = _with_note(canvas)
    return BACKENDS[backend](canvas)


def draw_with_pillow(canvas: Canvas) -> np.ndarray:
    """Draw a canvas with Pillow."""
    image = Image.new("RGB", (canvas.width, canvas.height), canvas.background)
    draw = ImageDraw.Draw(image)
    for shape in canvas.shapes:
        if isinstance(shape, Raster):
            image.paste(Image.fromarray(shape.pixels), (round(shape.x), round(shape.y)))
        elif isinstance(shape, Rectangle):
            _draw_rectangle(draw, shape)
        else:
            _draw_text(draw, shape)
    return np.array(image)


def draw_with_matplotlib(canvas: Canvas) -> np.ndarray:
    """Draw a canvas with matplotlib, in a figure of its size. pyplot and its state are not used."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.transforms import Affine2D

    size = (canvas.width / DPI, canvas.height / DPI)
    figure = Figure(figsize=size, dpi=DPI, facecolor=_fractions(canvas.background))
    # matplotlib counts pixels from the bottom.
    to_figure = Affine2D().scale(1, -1).translate(0, canvas.height)
    for order, shape in enumerate(canvas.shapes):
        if isinstance(shape, Raster):
            bottom = canvas.height - round(shape.y) - len(shape.pixels)
            figure.figimage(shape.pixels, round(shape.x), bottom, origin="upper", zorder=order)
        elif isinstance(shape, Rectangle):
            patch = _make_patch(shape)
            patch.set(transform=to_figure, zorder=order)
            figure.add_artist(patch)
        else:
            _add_text(figure, shape, transform=to_figure, zorder=order)
    agg: Any = FigureCanvasAgg(figure)
    agg.draw()
    return np.array(agg.buffer_rgba())[..., :3]


BACKENDS = {"matplotlib": draw_with_matplotlib, "pillow": draw_with_pillow}


def _with_note(canvas: Canvas) -> Canvas:
    """Return a higher canvas with a note about missing characters below the picture."""
    lines = wrap(NOTE, NOTE_SIZE, canvas.width - 2 * NOTE_MARGIN)
    top = canvas.height
    height = NOTE_LINE_HEIGHT * len(lines) + 8
    higher = replace(canvas, height=top + height, shapes=list(canvas.shapes))
    higher.add(Rectangle(0, top, canvas.width, height, NOTE_COLOR))
    for number, line in enumerate(lines):
        middle = top + 4 + NOTE_LINE_HEIGHT * (number + 0.5)
        higher.add(Text(NOTE_MARGIN, middle, line, NOTE_SIZE, BLACK))
    return higher


def _draw_rectangle(draw: ImageDraw.ImageDraw, shape: Rectangle) -> None:
    left, top, right, bottom = _bounds(shape)
    if right <= left or bottom <= top:
        return
    # Pillow counts the right and the bottom edge as part of a rectangle.
    box = (left, top, right - 1, bottom - 1)
    if shape.thickness:
        draw.rectangle(box, outline=shape.color, width=shape.thickness)
    else:
        draw.rectangle(box, fill=shape.color)


def _draw_text(draw: ImageDraw.ImageDraw, shape: Text) -> None:
    x = shape.x - ALIGNMENT_SHIFT[shape.align] * text_width(shape.text, shape.size)
    for run, file in split_by_font(shape.text):
        font = load_font(file, shape.size)
        draw.text((round(x), round(shape.y)), run, shape.color, font, anchor="lm")
        x += font.getlength(run)


def _make_patch(shape: Rectangle) -> Any:
    from matplotlib.patches import Rectangle as Patch

    left, top, right, bottom = _bounds(shape)
    color = _fractions(shape.color)
    width = right - left
    height = bottom - top
    if not shape.thickness:
        return Patch((left, top), width, height, color=color, linewidth=0, antialiased=False)
    # The line is drawn on both sides of its path.
    inset = shape.thickness / 2
    return Patch(
        (left + inset, top + inset),
        width - shape.thickness,
        height - shape.thickness,
        fill=False,
        edgecolor=color,
        linewidth=shape.thickness * POINTS_PER_PIXEL,
        joinstyle="miter",
        snap=False,
        antialiased=False,
    )


def _add_text(figure: Any, shape: Text, **placement: Any) -> None:
    text, families = drawable_text(shape.text)
    figure.text(
        shape.x,
        shape.y,
        text,
        fontsize=shape.size * POINTS_PER_PIXEL,
        fontfamily=families,
        color=_fractions(shape.color),
        horizontalalignment=shape.align,
        verticalalignment="center",
        parse_math=False,
        usetex=False,
        **placement,
    )


def drawable_text(text: str) -> tuple[str, list[str]]:
    """Return a text that matplotlib can draw, and the families of the fonts that it needs."""
    runs = split_by_font(text)
    families = ["DejaVu Sans"]
    for file in {file for _, file in runs} - {DEJAVU_SANS}:
        families.append(_register_font(file))
    return "".join(run for run, _ in runs), families


@functools.cache
def _register_font(file: str) -> str:
    """Make a font known to matplotlib and return its family name."""
    from matplotlib.font_manager import FontProperties, fontManager

    fontManager.addfont(file)
    return FontProperties(fname=file).get_name()


def _bounds(shape: Rectangle) -> tuple[int, int, int, int]:
    """Return left, top, right and bottom in whole pixels; right and bottom are exclusive."""
    right = shape.x + shape.width
    bottom = shape.y + shape.height
    return round(shape.x), round(shape.y), round(right), round(bottom)


def _fractions(color: tuple[int, int, int]) -> tuple[float, float, float]:
    """Return a color as matplotlib takes it, with parts from 0 to 1."""
    return color[0] / 255, color[1] / 255, color[2] / 255
