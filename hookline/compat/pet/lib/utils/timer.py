"""A stopwatch that also adds up times between `tic` and `toc`."""

from __future__ import annotations

import time

from hookline.hooks import test_timer_hook


class Timer(test_timer_hook.Timer):
    """Runs from its making (`seconds`, `pause`, `resume`, `reset`), and besides that measures calls (`tic`, `toc`, `average_time`)."""

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        super().reset()
        self._begun, self._paused_at, self._paused = time.perf_counter(), None, 0.0  # type: float, float | None, float

    def pause(self) -> None:
        if self._paused_at is not None:
            raise ValueError("Trying to pause a Timer that is already paused!")
        self._paused_at = time.perf_counter()

    def resume(self) -> None:
        if self._paused_at is None:
            raise ValueError("Trying to resume a Timer that is not paused!")
        self._paused += time.perf_counter() - self._paused_at
        self._paused_at = None

    def is_paused(self) -> bool:
        return self._paused_at is not None

    def seconds(self) -> float:
        """How long it has run, without its pauses."""
        end = time.perf_counter() if self._paused_at is None else self._paused_at
        return end - self._begun - self._paused
