"""Drawing in the background: in order, bounded, and never the end of a run."""

from __future__ import annotations

import logging
import threading

import pytest

from hookline.engine import BaseHook
from hookline.visual.canvas import blank
from hookline.visual.painter import Painter, painter_of
from hookline.visual.picture_hook import PictureHook
from tests.helpers import make_runner


@pytest.fixture
def painter():
    return Painter(logging.getLogger("hookline"), size=2)


def threads():
    return [thread for thread in threading.enumerate() if thread.name == "hookline-painter"]


def test_jobs_are_done_in_order_in_one_other_thread(painter):
    done = []
    for number in range(2):
        assert painter.has_room("hook")
        painter.submit("hook", lambda number=number: done.append((number, threading.current_thread().name)))
    painter.finish()
    assert done == [(0, "hookline-painter"), (1, "hookline-painter")]
    assert threads() == []


def test_there_is_no_thread_before_the_first_picture_and_none_after_the_end(painter):
    assert threads() == []
    painter.submit("hook", lambda: None)
    assert len(threads()) == 1
    painter.finish()
    assert threads() == []


def test_it_can_go_on_after_its_end(painter):
    done = []
    for number in range(2):
        painter.submit("hook", lambda number=number: done.append(number))
        painter.finish()
    assert done == [0, 1]


def test_a_full_queue_drops_pictures_and_says_so_at_the_end(painter, caplog):
    gate, started = threading.Event(), threading.Event()
    painter.submit("slow", lambda: (started.set(), gate.wait(10)))
    assert started.wait(10)
    for _ in range(5):
        if painter.has_room("fast"):
            painter.submit("fast", lambda: None)
    gate.set()
    painter.finish()
    assert caplog.messages == ["3 pictures were dropped, because drawing could not keep up: fast 3"]


def test_two_that_were_promised_the_same_place_do_not_wait_for_each_other(painter, caplog):
    gate, started = threading.Event(), threading.Event()
    painter.submit("slow", lambda: (started.set(), gate.wait(10)))
    assert started.wait(10)
    painter.submit("first", lambda: None)
    assert painter.has_room("second")
    assert painter.has_room("third")
    painter.submit("second", lambda: None)
    painter.submit("third", lambda: None)  # would wait for the gate
    gate.set()
    painter.finish()
    assert caplog.messages == ["1 pictures were dropped, because drawing could not keep up: third 1"]


def test_an_end_in_a_hurry_drops_what_waits(painter, caplog):
    gate, started, done = threading.Event(), threading.Event(), []
    painter.submit("hook", lambda: (started.set(), gate.wait(0.2)))
    assert started.wait(10)
    painter.submit("hook", lambda: done.append(1))
    painter.finish(discard=True)
    assert done == []
    assert "1 pictures were dropped" in caplog.text


def test_an_error_is_told_once_counted_and_does_not_stop_the_others(painter, caplog):
    done = []

    def fail():
        raise ValueError("expected boxes [N, 4], got [3, 5]")

    for job in (fail, fail, lambda: done.append(1)):
        while not painter.has_room("hook"):
            painter.dropped.clear()
        painter.submit("hook", job)
    painter.finish()
    assert done == [1]
    assert caplog.messages == [
        "hook: cannot draw: expected boxes [N, 4], got [3, 5]",
        "2 pictures were not drawn, because of errors: hook 2",
    ]
    assert caplog.records[0].exc_info is None


def test_an_error_of_our_own_making_comes_with_its_traceback(painter, caplog):
    painter.submit("hook", lambda: {}["absent"])
    painter.finish()
    assert caplog.records[0].exc_info is not None


class Draws(PictureHook):
    def __init__(self, compose=lambda: [("", blank(4, 4))]):
        self.compose = compose

    def after_train_iter(self, runner):
        if self.has_room(runner):
            self.paint(runner, self.compose)


def test_all_hooks_of_a_runner_share_one_painter(tmp_path):
    runner = make_runner(tmp_path, Draws(), Draws(), max_iters=2)
    runner.train()
    assert painter_of(runner) is runner.get_service("painter")
    assert len(list(tmp_path.rglob("*.png"))) == 4


def test_after_a_run_all_is_drawn_and_the_thread_is_gone_also_when_it_failed(tmp_path):
    class Fails(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 1:
                raise RuntimeError("broken")

    runner = make_runner(tmp_path, Fails(), Draws())
    with pytest.raises(RuntimeError, match="broken"):
        runner.train()
    assert len(list(tmp_path.rglob("*.png"))) == 2
    assert threads() == []


def test_a_drawing_that_fails_does_not_fail_the_training(tmp_path, caplog):
    def compose():
        raise ValueError("no picture today")

    runner = make_runner(tmp_path, Draws(compose))
    runner.train()
    assert runner.iter == 8
    assert [message for message in caplog.messages if "no picture" in message] == ["Draws: cannot draw: no picture today"]


def test_a_folder_that_cannot_be_written_is_told_and_training_goes_on(tmp_path, caplog):
    (tmp_path / "visualizations").write_text("a file where the folder should be")
    runner = make_runner(tmp_path, Draws())
    runner.train()
    assert runner.iter == 8
    assert "Draws: cannot draw" in caplog.text


@pytest.mark.parametrize("hook_order", ["nested", "flat"])
def test_writers_get_all_pictures_before_anything_is_closed(tmp_path, hook_order):
    log = []

    class Writer(BaseHook):
        def before_run(self, runner):
            runner.events.listeners.append(self)

        def write(self, record):
            log.append(record.iter)

        def cleanup(self, runner):
            log.append("closed")

    make_runner(tmp_path, Writer(), Draws(), hook_order=hook_order, max_iters=3).train()
    assert log == [0, 1, 2, "closed"]
