"""Requests where processes have to agree: what comes of them is what comes of them in a run that is alone."""

from __future__ import annotations

import os
import signal

import pytest
import torch

from hookline.dist import World
from hookline.dist.agreement import Agreement
from hookline.engine import BaseHook, Interrupted, StopReason
from hookline.engine.requests import Requests
from hookline.engine.run_state import capture
from tests.helpers import batches, make_runner


class Asks(BaseHook):
    """Asks for things before training, and when it has validated."""

    collective = False

    def __init__(self, first: list[str], then: list[str]) -> None:
        self.first, self.then, self.saved = first, then, []

    def before_train(self, runner):
        self.request(runner, self.first)

    def after_val_epoch(self, runner):
        self.request(runner, self.then)

    def request(self, runner, things):
        if "validate" in things:
            runner.request_validate(collective=self.collective)
        if "save" in things:
            runner.request_save(write=self.write, collective=self.collective)
        if "stop" in things:
            runner.request_stop("enough", collective=self.collective)

    def write(self, checkpoint):
        self.saved.append(checkpoint["meta"]["iter"])


class AsksTogether(Asks):
    collective = True


def a_run(folder, seam, hook, resumed=True):
    if resumed:
        torch.save(
            capture(make_runner(folder, train_loader=batches(4), max_epochs=1).train()),
            folder / "before.pth",
        )
    parts = {"resume": folder / "before.pth"} if resumed else {}
    runner = make_runner(
        folder, hook, train_loader=batches(4), val_loader=batches(1), max_epochs=2, **parts
    )
    if seam == "shared":
        runner.loop.requests = Requests(World(), Agreement(World()))
    return runner.train()


@pytest.mark.parametrize("kind", [Asks, AsksTogether])
@pytest.mark.parametrize("seam", ["alone", "shared"])
@pytest.mark.parametrize(
    ("first", "then", "trained", "saved"),
    [
        (["stop"], [], 4, []),  # it was over when it was resumed
        (["stop", "save"], [], 4, [4]),
        (["save"], [], 8, [5]),  # its state is not whole before the first iteration
        (
            ["validate"],
            ["stop", "save", "validate"],
            8,
            [],
        ),  # the run has been here before: nothing follows
        (["validate", "save"], ["stop"], 8, [5]),
    ],
)
def test_requests_before_a_resumed_run_continues(tmp_path, kind, seam, first, then, trained, saved):
    hook = kind(first, then)
    runner = a_run(tmp_path, seam, hook)
    assert (runner.iter, hook.saved) == (trained, saved)
    assert runner.stop_reason.details == ({} if "stop" in first else {"max_epochs": 2})


@pytest.mark.parametrize("seam", ["alone", "shared"])
def test_a_signal_in_a_validation_from_which_nothing_follows_is_heard(tmp_path, seam):
    class Interrupt(Asks):
        def after_val_epoch(self, runner):
            os.kill(os.getpid(), signal.SIGTERM)

    hook = Interrupt(["validate"], [])
    with pytest.raises(Interrupted):
        a_run(tmp_path, seam, hook)
    assert (hook.runner.iter, hook.runner.stop_reason.details) == (5, {"signal": "SIGTERM"})


@pytest.mark.parametrize("seam", ["alone", "shared"])
def test_what_is_asked_for_before_a_new_run_is_done_before_its_first_iteration(tmp_path, seam):
    hook = Asks(["validate"], ["save", "stop"])
    runner = a_run(tmp_path, seam, hook, resumed=False)
    assert (runner.iter, hook.saved, runner.stop_reason.message) == (0, [0], "enough")


def test_a_request_made_during_an_exchange_waits_for_the_next_one(tmp_path):
    runner = make_runner(tmp_path, train_loader=batches(4))
    written = []

    class Interrupted(Agreement):
        """An exchange that a signal interrupts, once."""

        def exchange(self, position):
            answers = super().exchange(position)
            if not interrupted:
                interrupted.append(True)
                runner.loop.requests.stop(StopReason("interrupted"))
                runner.request_save(write=written.append)
            return answers

    interrupted: list[bool] = []
    runner.loop.requests = Requests(World(), Interrupted(World()))
    runner.loop.requests.settle(runner)
    assert runner.stop_reason is None
    assert not written
    runner.loop.requests.settle(runner)
    assert runner.stop_reason == StopReason("interrupted")
    assert len(written) == 1
