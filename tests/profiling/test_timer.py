"""A stopwatch."""

from __future__ import annotations

from hookline.profiling.timer import Timer
from tests.clock import FakeClock


def test_times_between_tic_and_toc_add_up() -> None:
    clock = FakeClock()
    timer = Timer(clock=clock)
    for seconds in (1.0, 3.0):
        timer.tic()
        clock.advance(seconds)
        assert timer.toc(average=False) == seconds
        clock.advance(10.0)
    assert (timer.calls, timer.total_time, timer.average_time) == (2, 4.0, 2.0)
    timer.reset()
    assert (timer.calls, timer.total_time, timer.average_time) == (0, 0.0, 0.0)


def test_a_toc_without_a_running_tic_counts_nothing() -> None:
    timer = Timer(clock=FakeClock())
    assert timer.toc() == 0.0
    timer.tic()
    assert timer.is_running
    timer.cancel()
    assert not timer.is_running
    timer.toc()
    assert timer.calls == 0


def test_a_timer_prints_its_times_alone() -> None:
    assert repr(Timer(3.0, 2)) == "Timer(total_time=3.0, calls=2, diff=0.0)"
