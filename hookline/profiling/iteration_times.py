"""Times of iterations and of the pauses between them, and the time that a run still takes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple


class Finished(NamedTuple):
    """Finished iterations, in columns.

    Attributes:
        iterations: Their numbers.
        ends: Readings of the clock at their ends.
        seconds: How long they took.
        waits: How long they waited for their batches.
        warmup: How many of them, the first ones, belong to the warm-up.
    """

    iterations: Sequence[int]
    ends: Sequence[float]
    seconds: list[float]
    waits: Sequence[float]
    warmup: int


class IterationTimes:
    """The times of the iterations of a run, computed for many of them at once.

    After each iteration, append its number, the clock and its waiting time to `pending`.

    Args:
        first: The first iteration of the run.
        warmup: The number of first iterations that do not count.
        now: The clock.

    Attributes:
        pending: Iterations that `take` has not returned yet.
        iters: The number of iterations after the warm-up.
        seconds: How long these took.
        warmup_seconds: How long the warm-up took.
    """

    def __init__(self, first: int, warmup: int, now: float) -> None:
        self.pending: list[tuple[int, float, float]] = []
        self.iters = 0
        self.seconds = 0.0
        self.warmup_seconds = 0.0
        self._first = first
        self._warm = first + warmup
        self._began = now  # the iteration that follows
        self._pauses = 0.0  # seconds of validations, saves and ends of epochs
        self._paused_at = first  # the iteration up to which `_pauses` is complete
        self._pace = 0.0  # seconds per iteration
        self._reported_iters = 0  # `iters` and `seconds` at the last report
        self._reported_seconds = 0.0

    def take(self) -> Finished:
        """Return the pending iterations, of which there must be one, with their times."""
        iterations, ends, waits = zip(*self.pending, strict=True)
        self.pending.clear()
        begins = (self._began, *ends[:-1])
        seconds = [end - begin for begin, end in zip(begins, ends, strict=True)]
        self._began = ends[-1]
        warmup = bisect_left(iterations, self._warm)
        self.iters += len(ends) - warmup
        self.seconds += sum(seconds[warmup:])
        self.warmup_seconds += sum(seconds[:warmup])
        iters = self.iters - self._reported_iters
        if iters:
            self._pace = (self.seconds - self._reported_seconds) / iters
        return Finished(iterations, ends, seconds, waits, warmup)

    def pause(self, iteration: int, now: float) -> None:
        """Count the time since the last iteration as a pause; `iteration` begins now."""
        self._pauses += now - self._began
        self._paused_at = iteration
        self._began = now

    def start_interval(self) -> tuple[int, float]:
        """Return the iterations since the last call, and their seconds, after the warm-up."""
        iters = self.iters - self._reported_iters
        seconds = self.seconds - self._reported_seconds
        self._reported_iters = self.iters
        self._reported_seconds = self.seconds
        return iters, seconds

    def seconds_left(self, done: int, end: int) -> float:
        """Extrapolate the pace since the last report, and the mean pause so far.

        Args:
            done: The number of finished iterations.
            end: The number of iterations at the end of the run.
        """
        seconds = self._pace * (end - done)
        if self._paused_at > self._first:
            pause = self._pauses / (self._paused_at - self._first)
            seconds += pause * (end - self._paused_at)
        return seconds
