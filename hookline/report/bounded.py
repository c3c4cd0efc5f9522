"""A curve of any length in bounded memory."""

from __future__ import annotations

import math
from array import array
from typing import Any

import numpy as np

from hookline.report.downsample import Thinned, thin

MAX_PIECES = 8192
MAX_PENDING = 8192
# Columns of the two tables; a piece is some consecutive points.
COUNT, FIRST_X, LAST_X, LOW_X, HIGH_X = range(5)
LOW, HIGH, SUM = range(3)


class BoundedCurve:
    """A curve that is exact up to `MAX_PIECES` points.

    A longer curve is cut into pieces of equal length, of which the lowest and the highest point and
    the sum are kept. Whenever there are too many pieces, two neighbors become one.
    """

    def __init__(self) -> None:
        self.not_finite = 0
        self.first_not_finite = 0  # the step of the first such value
        self.length = 1  # points in a piece; the last piece may have fewer
        self.steps = np.empty((0, 5), dtype="<i8")
        self.values = np.empty((0, 3), dtype="<f8")
        self.ends: list[tuple[int, float]] = []  # the first and the last point
        self._x = array("q")  # points that are in no piece yet
        self._y = array("d")

    def add(self, step: int, value: float) -> None:
        if math.isfinite(value):
            self.extend([step], [value])
        else:
            self.add_not_finite(step)

    def add_not_finite(self, step: int) -> None:
        if not self.not_finite:
            self.first_not_finite = step
        self.not_finite += 1

    def extend(self, steps: list[int], values: list[float]) -> None:
        """Add finite values."""
        self.ends = [*self.ends[:1], (steps[0], values[0]), (steps[-1], values[-1])]
        self.ends = [self.ends[0], self.ends[-1]]
        self._x.extend(steps)
        self._y.extend(values)
        if len(self._x) >= MAX_PENDING:
            self.fold()

    def fold(self) -> None:
        """Put all points into pieces."""
        x = np.array(self._x, dtype="<i8")
        y = np.array(self._y, dtype="<f8")
        self._x = array("q")
        self._y = array("d")
        if not len(x):
            return
        steps = np.stack([np.ones_like(x), x, x, x, x], axis=1)
        values = np.stack([y, y, y], axis=1)
        whole = len(self.steps)
        if whole and self.steps[-1, COUNT] < self.length:
            whole -= 1  # The last piece is not complete.
        merged = _merge(
            np.concatenate([self.steps[whole:], steps]),
            np.concatenate([self.values[whole:], values]),
            self.length,
        )
        self.steps = np.concatenate([self.steps[:whole], merged[0]])
        self.values = np.concatenate([self.values[:whole], merged[1]])
        while len(self.steps) > MAX_PIECES:
            self.length *= 2
            self.steps, self.values = _merge(self.steps, self.values, self.length)

    def count(self) -> int:
        """Return the number of points."""
        return int(self.steps[:, COUNT].sum()) + len(self._x)

    def thinned(self, limit: int) -> Thinned:
        """Return at most about `limit` points in the order of their steps, with the extremes."""
        self.fold()
        if self.length == 1:
            order = np.argsort(self.steps[:, FIRST_X], kind="stable")
            return thin(self.steps[order, FIRST_X], self.values[order, LOW], limit)
        length = self.length
        steps, values = self.steps, self.values
        while 2 * len(steps) + 2 > limit:
            length *= 2
            steps, values = _merge(steps, values, length)
        first, last = self.ends
        x = np.concatenate([[first[0]], steps[:, LOW_X], steps[:, HIGH_X], [last[0]]])
        y = np.concatenate([[first[1]], values[:, LOW], values[:, HIGH], [last[1]]])
        x, y = _unique_points(x, y)
        with np.errstate(over="ignore"):
            mean_y = np.nan_to_num(values[:, SUM]) / steps[:, COUNT]
        mean_x = steps[:, FIRST_X] // 2 + steps[:, LAST_X] // 2
        order = np.argsort(mean_x, kind="stable")
        return Thinned(x, y, mean_x[order], mean_y[order])

    def about(self) -> dict[str, Any]:
        """Return everything but the two tables, as plain values."""
        return {
            "not_finite": self.not_finite,
            "first_not_finite": self.first_not_finite,
            "length": self.length,
            "pieces": len(self.steps),
            "ends": self.ends,
        }


def _merge(steps: np.ndarray, values: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Merge consecutive pieces until each has `length` points, except for the last one."""
    size = len(steps)
    group = (np.cumsum(steps[:, COUNT]) - steps[:, COUNT]) // length
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    stops = np.append(starts[1:], size)
    low, low_at = _extreme(np.minimum, values[:, LOW], starts, stops)
    high, high_at = _extreme(np.maximum, values[:, HIGH], starts, stops)
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.add.reduceat(values[:, SUM], starts)
    counts = np.add.reduceat(steps[:, COUNT], starts)
    columns = [
        counts,
        steps[starts, FIRST_X],
        steps[stops - 1, LAST_X],
        steps[low_at, LOW_X],
        steps[high_at, HIGH_X],
    ]
    return np.stack(columns, axis=1), np.stack([low, high, total], axis=1)


def _extreme(
    function: np.ufunc, values: np.ndarray, starts: np.ndarray, stops: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the extreme value of each group of rows, and the first row that has it."""
    found = function.reduceat(values, starts)
    rows = np.arange(len(values))
    is_found = values == np.repeat(found, stops - starts)
    return found, np.minimum.reduceat(np.where(is_found, rows, len(values)), starts)


def _unique_points(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort((y, x))
    x = x[order]
    y = y[order]
    is_new = np.append(True, (np.diff(x) != 0) | (np.diff(y) != 0))
    return x[is_new], y[is_new]
