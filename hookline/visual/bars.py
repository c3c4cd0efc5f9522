"""Bar charts."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

MEAN_COLOUR, MAX_COLOUR, MARK_COLOUR = "#0072b2", "#f0b37e", "#c1121f"  # distinct for colour-blind eyes too
TOP, BOTTOM, RIGHT = 0.45, 0.55, 0.3  # inches around the bars
LETTER = 0.065  # inches, enough for the letters of layers' names


def gradient_figure(flow: Mapping[str, tuple[float, float]], title: str, marked: Collection[str] = ()) -> Figure:
    """Mean and largest |gradient| of each layer on a logarithmic scale, first layer on top; names of `marked` ones are red."""
    names = list(flow)
    places = range(len(names))
    axes = _axes(names)
    axes.barh(places, [_drawable(largest) for _, largest in flow.values()], height=0.8, color=MAX_COLOUR, label="largest")
    axes.barh(places, [_drawable(mean) for mean, _ in flow.values()], height=0.4, color=MEAN_COLOUR, label="mean")
    axes.set_xscale("log")
    axes.set_yticks(places, names, fontsize=8, parse_math=False)
    for label, name in zip(axes.get_yticklabels(), names, strict=True):
        if name in marked:
            label.set_color(MARK_COLOUR)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("|gradient|", fontsize=8)
    axes.set_title(title, fontsize=10, parse_math=False, loc="left")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=2, fontsize=8, frameon=False)
    return axes.figure  # type: ignore[return-value]  # it may only be a SubFigure in figures that have such


def _axes(names: list[str]) -> Axes:
    """Axes with room for the names; laid out by hand, because matplotlib's layout engines draw everything twice."""
    left = 0.3 + LETTER * max(map(len, names))
    width, height = left + 6 + RIGHT, min(TOP + BOTTOM + 0.3 + 0.24 * len(names), 300)
    figure = Figure(figsize=(width, height), dpi=100)
    return figure.add_axes((left / width, BOTTOM / height, 6 / width, 1 - (TOP + BOTTOM) / height))


def _drawable(value: float) -> float:
    """A logarithmic scale has no place for 0, infinity and NaN: no bar."""
    return value if 0 < value < math.inf else math.nan
