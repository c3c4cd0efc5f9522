"""Reduce the number of points of a curve and keep its extremes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hookline.errors import ConfigError

MIN_POINTS = 6


class Thinned(NamedTuple):
    """The points that are kept, and the means of the points around them, for smoothing."""

    x: np.ndarray
    y: np.ndarray
    mean_x: np.ndarray
    mean_y: np.ndarray


def thin(x: np.ndarray, y: np.ndarray, limit: int) -> Thinned:
    """Return at most `limit` points of a curve.

    The curve is cut into pieces of equal length. The lowest and the highest point of each piece are
    kept, and the first and the last point of the curve.
    """
    if limit < MIN_POINTS:
        message = f"a curve needs at least {MIN_POINTS} points"
        raise ConfigError(message, parameter="limit", value=limit)
    if len(x) <= limit:
        return Thinned(x, y, x, y)
    pieces = (limit - 2) // 2
    size = -(-len(x) // pieces)  # points in a piece; the last piece may have fewer
    whole = len(x) // size * size
    values = y[:whole].reshape(-1, size)
    starts = np.arange(0, whole, size)
    ends = np.array([0, len(x) - 1])
    kept = [ends, starts + values.argmin(axis=1), starts + values.argmax(axis=1)]
    mean_x = x[starts + size // 2]
    mean_y = values.mean(axis=1)
    if whole < len(x):
        rest = y[whole:]
        kept.append(whole + np.array([rest.argmin(), rest.argmax()]))
        mean_x = np.append(mean_x, x[(whole + len(x)) // 2])
        mean_y = np.append(mean_y, rest.mean())
    chosen = np.unique(np.concatenate(kept))
    return Thinned(x[chosen], y[chosen], mean_x, mean_y)
