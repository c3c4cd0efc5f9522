"""The thread that writes in the background."""

from __future__ import annotations

import threading

import pytest

from hookline.checkpoint.writer import BackgroundWriter
from tests.waiting import LIMIT_S


def fail() -> None:
    raise OSError("no space")


def test_a_job_runs_in_a_daemon_thread() -> None:
    writer = BackgroundWriter()
    go = threading.Event()
    done = []

    def job() -> None:
        go.wait(LIMIT_S)
        done.append(threading.current_thread().daemon)

    writer.submit(job)
    assert not done
    go.set()
    writer.wait()
    assert done == [True]


def test_jobs_run_one_at_a_time_and_in_order() -> None:
    writer = BackgroundWriter()
    running: list[int] = []
    seen: list[int] = []

    def job(number: int) -> None:
        running.append(number)
        assert len(running) == 1
        seen.append(running.pop())

    for number in range(20):
        writer.submit(lambda number=number: job(number))
    writer.wait()
    assert seen == list(range(20))


def test_wait_raises_the_error_of_a_job_once() -> None:
    writer = BackgroundWriter()
    writer.submit(fail)
    with pytest.raises(OSError, match="no space"):
        writer.wait()
    writer.wait()


def test_submit_raises_the_error_of_the_previous_job_and_starts_nothing() -> None:
    writer = BackgroundWriter()
    done = []
    writer.submit(fail)
    with pytest.raises(OSError, match="no space"):
        writer.submit(lambda: done.append(1))
    writer.wait()
    assert not done
    writer.submit(lambda: done.append(2))
    writer.wait()
    assert done == [2]
