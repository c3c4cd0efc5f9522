"""Detect memory leaks."""

from __future__ import annotations

from collections import deque
from itertools import combinations, pairwise
from statistics import median

WINDOW = 10  # measurements in which a leak must show
SETTLING = 2  # the number of first measurements that are ignored, because caches fill
MIN_GROWTH_BYTES = 16e6  # in a window
MIN_GROWTH_SHARE = 0.01  # of the memory in use, in a window


class Growth:
    """A detector of leaks: memory that grows in nearly every step, and by a relevant amount."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, float]] = deque(maxlen=WINDOW)
        self._seen = 0

    def add(self, iteration: int, used: float) -> float | None:
        """Add a measurement; return the bytes leaked per iteration, or None."""
        self._seen += 1
        if self._seen > SETTLING:
            self._points.append((iteration, used))
        return self._slope() if len(self._points) == WINDOW else None

    def _slope(self) -> float | None:
        values = [used for _, used in self._points]
        steps = [after - before for before, after in pairwise(values)]
        first = values[: WINDOW // 2]
        second = values[WINDOW // 2 :]
        growing_steps = sum(step > 0 for step in steps)
        grows_always = growing_steps >= len(steps) - 1 and min(second) > max(first)
        # The median step, not the sum: one jump, such as the workers of an epoch, is no leak.
        grown = median(steps) * len(steps)
        if not grows_always or grown < max(MIN_GROWTH_BYTES, MIN_GROWTH_SHARE * values[-1]):
            return None
        return median((b - a) / (j - i) for (i, a), (j, b) in combinations(self._points, 2))
