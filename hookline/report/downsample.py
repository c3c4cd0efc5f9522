"""Fewer points that look the same: the extremes stay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Thinned(NamedTuple):
    """The points of a curve that are kept, and the means of what lies around them, which smoothing needs."""

    x: np.ndarray
    y: np.ndarray
    mean_x: np.ndarray
    mean_y: np.ndarray


def thin(x: np.ndarray, y: np.ndarray, limit: int) -> Thinned:
    """At most `limit` points: the first, the last, and the lowest and highest of each of many equal pieces of the curve."""
    if limit < 6:
        raise ValueError(f"a curve needs at least 6 points, got {limit}")
    if len(x) <= limit:
        return Thinned(x, y, x, y)
    size = -(-len(x) // ((limit - 2) // 2))  # points in a piece; the last piece may have fewer
    whole = len(x) // size * size
    pieces = y[:whole].reshape(-1, size)
    starts = np.arange(0, whole, size)
    kept = [np.array([0, len(x) - 1]), starts + pieces.argmin(axis=1), starts + pieces.argmax(axis=1)]
    mean_x, mean_y = x[starts + size // 2], pieces.mean(axis=1)
    if whole < len(x):
        rest = y[whole:]
        kept.append(whole + np.array([rest.argmin(), rest.argmax()]))
        mean_x, mean_y = np.append(mean_x, x[(whole + len(x)) // 2]), np.append(mean_y, rest.mean())
    chosen = np.unique(np.concatenate(kept))
    return Thinned(x[chosen], y[chosen], mean_x, mean_y)
