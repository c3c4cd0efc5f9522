"""A stopwatch."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Timer:
    """A stopwatch that sums up the times between `tic` and `toc`."""

    total_time: float = 0.0
    calls: int = 0
    diff: float = 0.0
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False)
    _start: float | None = field(default=None, repr=False)

    @property
    def average_time(self) -> float:
        if not self.calls:
            return 0.0
        return self.total_time / self.calls

    @property
    def is_running(self) -> bool:
        return self._start is not None

    def tic(self) -> None:
        self._start = self.clock()

    def toc(self, average: bool = True) -> float:
        """Return the seconds since `tic`, or their mean over all calls; 0 without a `tic`."""
        if self._start is not None:
            self.diff = self.clock() - self._start
            self._start = None
            self.total_time += self.diff
            self.calls += 1
        return self.average_time if average else self.diff

    def cancel(self) -> None:
        """Forget the last `tic`."""
        self._start = None

    def reset(self) -> None:
        self.total_time = 0.0
        self.calls = 0
        self.diff = 0.0
        self._start = None
