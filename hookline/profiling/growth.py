"""Whether memory grows without end."""

from __future__ import annotations

from collections import deque
from itertools import combinations, pairwise
from statistics import median

WINDOW = 10  # measurements that a judgement rests on
SETTLING = 2  # the first ones, while caches fill
LEAST_BYTES = 16e6  # growth within a window that is worth a word
LEAST_SHARE = 0.01  # and what it must be of the whole


class Growth:
    """Tells a leak from noise and from memory that has found its level: it grows nearly always, and by a good deal."""

    def __init__(self) -> None:
        self._points: deque[tuple[int, float]] = deque(maxlen=WINDOW)
        self._seen = 0

    def add(self, iteration: int, used: float) -> float | None:
        """Take a measurement; bytes per iteration if memory looks as if it leaked, else None."""
        self._seen += 1
        if self._seen > SETTLING:
            self._points.append((iteration, used))
        return self._slope() if len(self._points) == WINDOW else None

    def _slope(self) -> float | None:
        values = [used for _, used in self._points]
        steps = [after - before for before, after in pairwise(values)]
        first, second = values[: WINDOW // 2], values[WINDOW // 2 :]
        grows_always = sum(step > 0 for step in steps) >= len(steps) - 1 and min(second) > max(first)
        # The median step, not the sum: one jump (a new epoch's workers, say) is no leak.
        grown = median(steps) * len(steps)
        if not grows_always or grown < max(LEAST_BYTES, LEAST_SHARE * values[-1]):
            return None
        return median((b - a) / (j - i) for (i, a), (j, b) in combinations(self._points, 2))
