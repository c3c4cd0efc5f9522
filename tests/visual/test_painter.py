"""The drawing thread: in order, with a bounded queue, and without effect on training."""

from __future__ import annotations

import logging
import threading

import pytest

from hookline.engine import BaseHook
from hookline.hooks.bases.picture import PictureHook
from hookline.visual.canvas import Canvas
from hookline.visual.painter import Painter, get_painter
from tests.helpers import make_runner
from tests.waiting import LIMIT_S


@pytest.fixture
def painter():
    return Painter(logging.getLogger("hookline"), size=2)


class BlockingJob:
    """Keeps the drawing thread busy until `release`."""

    def __init__(self):
        self._started = threading.Event()
        self._released = threading.Event()

    def __call__(self):
        self._started.set()
        assert self._released.wait(LIMIT_S)

    def wait_until_started(self):
        assert self._started.wait(LIMIT_S)

    def release(self):
        self._released.set()


def drawing_threads():
    return [thread for thread in threading.enumerate() if thread.name == "hookline-painter"]


def test_jobs_run_in_order_in_one_other_thread(painter):
    done = []
    for number in range(2):
        assert painter.has_room("hook")
        painter.submit(
            "hook", lambda number=number: done.append((number, threading.current_thread().name))
        )
    painter.finish()
    assert done == [(0, "hookline-painter"), (1, "hookline-painter")]


def test_the_thread_exists_from_the_first_picture_until_finish(painter):
    assert drawing_threads() == []
    painter.submit("hook", lambda: None)
    assert len(drawing_threads()) == 1
    painter.finish()
    assert drawing_threads() == []


def test_a_finished_painter_can_be_used_again(painter):
    done = []
    for number in range(2):
        painter.submit("hook", lambda number=number: done.append(number))
        painter.finish()
    assert done == [0, 1]


def test_a_full_queue_drops_pictures_and_finish_logs_how_many(painter, caplog):
    busy = BlockingJob()
    painter.submit("slow", busy)
    busy.wait_until_started()
    for _ in range(5):
        if painter.has_room("fast"):
            painter.submit("fast", lambda: None)
    assert painter.dropped == {"fast": 3}
    busy.release()
    painter.finish()
    (message,) = caplog.messages
    assert message.startswith("3 pictures were dropped")
    assert message.endswith("fast 3")


def test_submit_does_not_wait_for_room(painter):
    busy = BlockingJob()
    painter.submit("slow", busy)
    busy.wait_until_started()
    painter.submit("first", lambda: None)
    assert painter.has_room("second")
    assert painter.has_room("third")
    painter.submit("second", lambda: None)
    painter.submit("third", lambda: None)
    assert painter.dropped == {"third": 1}
    busy.release()
    painter.finish()


def test_an_urgent_finish_drops_queued_pictures(painter, caplog):
    busy = BlockingJob()
    done = []
    painter.submit("hook", busy)
    busy.wait_until_started()
    painter.submit("hook", lambda: done.append(1))
    painter.finish(discard=True)
    busy.release()
    assert done == []
    assert caplog.messages[0].startswith("1 pictures were dropped")


def test_an_error_is_logged_once_and_counted_and_other_pictures_are_drawn(caplog):
    painter = Painter(logging.getLogger("hookline"), size=3)
    done = []

    def fail():
        raise ValueError("expected boxes [N, 4], got [3, 5]")

    for job in (fail, fail, lambda: done.append(1)):
        painter.submit("hook", job)
    painter.finish()
    assert done == [1]
    first, last = caplog.messages
    assert first.startswith("hook: ")
    assert first.endswith("expected boxes [N, 4], got [3, 5]")
    assert last.startswith("2 pictures were not drawn")
    assert caplog.records[0].exc_info is None


def test_an_unexpected_error_is_logged_with_its_traceback(painter, caplog):
    painter.submit("hook", lambda: {}["absent"])
    painter.finish()
    assert caplog.records[0].exc_info[0] is KeyError


def draw_nothing():
    return [("", Canvas(4, 4))]


class Draws(PictureHook):
    def __init__(self, compose=draw_nothing):
        self.compose = compose

    def after_train_iter(self, runner):
        if self.has_room(runner):
            self.paint(runner, self.compose)


def test_all_hooks_of_a_runner_share_one_painter(tmp_path):
    runner = make_runner(tmp_path, Draws(), Draws(), max_iters=2)
    runner.train()
    assert get_painter(runner) is runner.get_service("painter")
    assert len(list(tmp_path.rglob("*.png"))) == 4


def test_a_failed_run_draws_its_pictures_and_ends_the_thread(tmp_path):
    class Fails(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 1:
                raise RuntimeError("broken")

    runner = make_runner(tmp_path, Fails(), Draws())
    with pytest.raises(RuntimeError, match="broken"):
        runner.train()
    assert len(list(tmp_path.rglob("*.png"))) == 2
    assert drawing_threads() == []


def test_a_drawing_that_fails_does_not_fail_the_training(tmp_path, caplog):
    def compose():
        raise ValueError("no picture today")

    runner = make_runner(tmp_path, Draws(compose))
    runner.train()
    assert runner.iter == 8
    assert len([message for message in caplog.messages if "no picture today" in message]) == 1


def test_a_folder_that_cannot_be_written_does_not_fail_the_training(tmp_path, caplog):
    (tmp_path / "visualizations").write_text("a file where the folder should be")
    runner = make_runner(tmp_path, Draws())
    runner.train()
    assert runner.iter == 8
    assert caplog.messages[0].startswith("Draws: ")


@pytest.mark.parametrize("hook_order", ["nested", "flat"])
def test_writers_get_all_pictures_before_they_are_closed(tmp_path, hook_order):
    log = []

    class Writer(BaseHook):
        def before_run(self, runner):
            runner.events.listeners.append(self)

        def write_row(self, row):
            pass

        def write(self, record):
            log.append(record.iter)

        def cleanup(self, runner):
            log.append("closed")

    make_runner(tmp_path, Writer(), Draws(), hook_order=hook_order, max_iters=3).train()
    assert log == [1, 2, 3, "closed"]
