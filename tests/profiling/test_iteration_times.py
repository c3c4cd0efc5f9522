"""Times of iterations and pauses."""

from __future__ import annotations

import pytest

from hookline.profiling.iteration_times import IterationTimes


def finish(times: IterationTimes, first: int, *ends: float) -> None:
    """Let iterations from `first` on end at readings of the clock."""
    for number, end in enumerate(ends, first):
        times.pending.append((number, end, 0.5))


def test_each_iteration_lasts_from_the_end_of_the_one_before() -> None:
    times = IterationTimes(first=4, warmup=0, now=10.0)
    finish(times, 4, 11.0, 13.0)
    finished = times.take()
    assert list(finished.iterations) == [4, 5]
    assert finished.seconds == [1.0, 2.0]
    assert list(finished.waits) == [0.5, 0.5]
    assert times.pending == []
    finish(times, 6, 16.0)
    assert times.take().seconds == [3.0]
    assert (times.iters, times.seconds) == (3, 6.0)


def test_a_pause_belongs_to_no_iteration() -> None:
    times = IterationTimes(first=0, warmup=0, now=0.0)
    finish(times, 0, 1.0)
    times.take()
    times.pause(1, now=5.0)
    finish(times, 1, 6.0)
    assert times.take().seconds == [1.0]


def test_the_warm_up_is_counted_on_its_own() -> None:
    times = IterationTimes(first=7, warmup=2, now=0.0)
    finish(times, 7, 5.0, 9.0, 10.0)
    assert times.take().warmup == 2
    assert (times.iters, times.seconds, times.warmup_seconds) == (1, 1.0, 9.0)


def test_the_time_left_has_the_pace_of_the_interval_and_the_mean_pause() -> None:
    times = IterationTimes(first=0, warmup=0, now=0.0)
    finish(times, 0, 3.0, 6.0)
    times.take()
    assert times.start_interval() == (2, 6.0)
    assert times.seconds_left(done=2, end=10) == 8 * 3.0
    times.pause(2, now=10.0)
    finish(times, 2, 11.0)
    times.take()
    assert times.seconds_left(done=3, end=10) == pytest.approx(7 * 1.0 + 8 * 4.0 / 2)
    assert times.start_interval() == (1, 1.0)
    assert times.start_interval() == (0, 0.0)
