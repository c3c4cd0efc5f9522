"""A stopwatch that can pause and also measures the time between `tic` and `toc`."""

from __future__ import annotations

import time
from collections.abc import Callable

from hookline.profiling import timer


class Timer(timer.Timer):
    """A stopwatch that runs from its creation and can pause.

    `seconds`, `pause`, `resume` and `reset` are those of the stopwatch; `tic`, `toc` and
    `average_time` measure single calls.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        super().__init__(clock=clock)
        self.reset()

    def reset(self) -> None:
        """Start again from zero."""
        super().reset()
        self._begun = self.clock()
        self._paused_at: float | None = None
        self._paused = 0.0

    def pause(self) -> None:
        if self._paused_at is not None:
            raise ValueError("Trying to pause a Timer that is already paused!")
        self._paused_at = self.clock()

    def resume(self) -> None:
        if self._paused_at is None:
            raise ValueError("Trying to resume a Timer that is not paused!")
        self._paused += self.clock() - self._paused_at
        self._paused_at = None

    def is_paused(self) -> bool:
        return self._paused_at is not None

    def seconds(self) -> float:
        """Return how long it has run, without its pauses."""
        end = self.clock() if self._paused_at is None else self._paused_at
        return end - self._begun - self._paused
