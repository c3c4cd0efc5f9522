"""Curves as text, for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

WIDTH, HEIGHT = 64, 9


def text_chart(values: Sequence[float], first: str, last: str) -> list[str]:
    """The lines of a curve, with its highest and lowest value at the side and the labels of its ends below."""
    low, high = min(values), max(values)
    width = min(WIDTH, len(values))
    rows = [[" "] * width for _ in range(HEIGHT)]
    for column in range(width):
        part = values[column * len(values) // width : max((column + 1) * len(values) // width, column * len(values) // width + 1)]
        for row in range(_row(min(part), low, high), _row(max(part), low, high) + 1):
            rows[row][column] = "•"
    labels = {HEIGHT - 1: f"{high:.4g}", 0: f"{low:.4g}"}
    side = max(map(len, labels.values()))
    lines = [f"{labels.get(row, ''):>{side}} ┤{''.join(rows[row]).rstrip()}" for row in reversed(range(HEIGHT))]
    space = max(width - len(first) - len(last), 1)
    return [*lines, f"{'':{side}} └{'─' * width}", f"{'':{side}}  {first}{' ' * space}{last}"]


def _row(value: float, low: float, high: float) -> int:
    return 0 if high == low else round((value - low) / (high - low) * (HEIGHT - 1))
