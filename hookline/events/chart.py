"""Curves as text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MARKS = "●○+x*#%@"
SHARED = "◆"  # for a cell with points of several curves


def text_chart(
    curves: Mapping[str, Sequence[tuple[float, float]]], width: int = 72, height: int = 14
) -> str:
    """Draw curves with axes and a legend. Each has its mark; cells of several have another."""
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return "nothing to draw"
    (left, right), (low, high) = (_range([point[axis] for point in points]) for axis in (0, 1))
    canvas = [[" "] * width for _ in range(height)]
    for mark, curve in zip(_marks(len(curves)), curves.values(), strict=True):
        for x, y in curve:
            column = round((x - left) / (right - left) * (width - 1))
            row = round((high - y) / (high - low) * (height - 1))
            canvas[row][column] = mark if canvas[row][column] in (" ", mark) else SHARED
    labels = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    margin = max(map(len, labels.values()))
    lines = [
        f"{labels.get(index, ''):>{margin}} │{''.join(row)}".rstrip()
        for index, row in enumerate(canvas)
    ]
    start, end = f"{left:g}", f"{right:g}"
    lines.append(f"{'':>{margin}} └{'─' * width}")
    lines.append(f"{'':>{margin}}  {start}{end:>{width - len(start)}}")
    legend = list(zip(_marks(len(curves)), curves, strict=True))
    if any(SHARED in row for row in canvas):
        legend.append((SHARED, "several curves"))
    lines += [f"{'':>{margin}}  {mark} {name}" for mark, name in legend]
    return "\n".join(lines)


def _range(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _marks(count: int) -> list[str]:
    return [MARKS[index % len(MARKS)] for index in range(count)]
