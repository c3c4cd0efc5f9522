from __future__ import annotations

import threading

import pytest

from hookline.checkpoint.writer import BackgroundWriter


def fail() -> None:
    raise OSError("no space")


def test_a_job_runs_beside_its_caller() -> None:
    writer, go, done = BackgroundWriter(), threading.Event(), []
    writer.submit(lambda: (go.wait(5), done.append(threading.current_thread().daemon)))
    assert writer.poll()
    assert not done
    go.set()
    writer.wait()
    assert done == [True]
    assert not writer.poll()


def test_one_job_at_a_time_and_in_order() -> None:
    writer, running, seen = BackgroundWriter(), [], []

    def job(number: int) -> None:
        running.append(number)
        assert len(running) == 1
        seen.append(running.pop())

    for number in range(20):
        writer.submit(lambda number=number: job(number))
    writer.close()
    assert seen == list(range(20))


@pytest.mark.parametrize("ask", ["poll", "wait", "close", "submit"])
def test_an_error_of_the_job_surfaces_once_in_whoever_asks_next(ask: str) -> None:
    writer = BackgroundWriter()
    writer.submit(fail)
    assert writer._thread is not None
    writer._thread.join()
    with pytest.raises(OSError, match="no space"):
        writer.submit(fail) if ask == "submit" else getattr(writer, ask)()
    writer.wait()


def test_after_an_error_the_next_job_runs() -> None:
    writer, done = BackgroundWriter(), []
    writer.submit(fail)
    with pytest.raises(OSError, match="no space"):
        writer.wait()
    writer.submit(lambda: done.append(1))
    writer.close()
    assert done == [1]
