"""Hooks ask; the loop acts at seams: validate, then save, then stop."""

from __future__ import annotations

import pytest

from hookline.engine import BaseHook, Priority
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook
from tests.helpers import Tracer, batches, make_runner


class Ask(BaseHook):
    """Asks for everything at one iteration, in the wrong order."""

    def __init__(self, at: int, write=None) -> None:
        self.at, self.write = at, write or (lambda checkpoint: None)

    def after_train_iter(self, runner):
        if runner.iter == self.at:
            runner.request_stop("enough")
            runner.request_stop("too late to be the reason")
            runner.request_save(write=self.write)
            runner.request_validate()


@pytest.mark.parametrize("priority", ["HIGHEST", "LOWEST"])
def test_requests_are_settled_in_their_order_after_all_hooks_of_the_site(tmp_path, priority):
    tracer = Tracer()
    runner = make_runner(tmp_path, tracer, train_loader=batches(8), val_loader=batches(1))
    runner.register_hook(Ask(at=2), priority=priority)
    runner.train()
    tail = tracer.log[tracer.log.index("before_val") - 1 :]
    assert tail == [
        "after_train_iter", "before_val", "before_val_epoch", "before_val_iter", "after_val_iter", "after_val_epoch", "after_val",
        "before_save_checkpoint", "after_save_checkpoint", "after_train", "after_run", "cleanup",
    ]  # fmt: skip
    assert runner.stop_reason.message == "enough"
    assert runner.iter == 3


@pytest.mark.parametrize("priority", list(Priority))
def test_a_checkpoint_holds_the_state_between_two_iterations_whatever_the_priority(
    tmp_path, priority
):
    written = []
    runner = make_runner(tmp_path, train_loader=batches(8))
    runner.register_hook(
        Ask(at=2, write=lambda c: written.append({**c["meta"], "live": runner.iter})),
        priority=priority,
    )
    runner.train()
    assert [(m["iter"], m["inner_iter"], m["optimizer_steps"], m["live"]) for m in written] == [
        (3, 3, 3, 3)
    ]


def test_the_last_iterations_seam_and_the_epochs_are_one(tmp_path):
    written = []

    class AskTwice(BaseHook):
        def write(self, checkpoint):
            written.append(
                (
                    checkpoint["meta"]["epoch"],
                    checkpoint["meta"]["inner_iter"],
                    checkpoint["meta"]["iter"],
                )
            )

        def after_train_iter(self, runner):
            runner.request_save(write=self.write)

        def after_train_epoch(self, runner):
            runner.request_save(write=self.write)

    make_runner(tmp_path, AskTwice(), train_loader=batches(3), max_epochs=2).train()
    assert written == [(0, 1, 1), (0, 2, 2), (1, 0, 3), (1, 1, 4), (1, 2, 5), (2, 0, 6)]
    written.clear()
    # Without a length the loop does not read ahead: the last iteration has a seam of its own.
    make_runner(tmp_path, AskTwice(), train_loader=(b for b in batches(3)), max_epochs=1).train()
    assert written == [(0, 1, 1), (0, 2, 2), (0, 3, 3), (1, 0, 3)]


def test_one_seam_takes_one_snapshot_for_all_who_asked(tmp_path):
    seen = []
    runner = make_runner(
        tmp_path, Ask(1, seen.append), Ask(1, seen.append), Ask(1, lambda c: seen.append(c))
    )
    runner.train()
    assert len(seen) == 2  # the same writer, asked twice, writes once
    assert seen[0] is seen[1]


def test_a_save_in_the_middle_of_accumulation_waits_for_the_optimizer_step(tmp_path):
    written = []

    class Accumulate(BaseHook):
        def after_train_iter(self, runner):
            runner.loop.accumulating = (runner.iter + 1) % 3 != 0

    runner = make_runner(
        tmp_path,
        Accumulate(),
        Ask(0, lambda c: written.append(c["meta"]["iter"])),
        train_loader=batches(8),
    )
    runner.train()
    assert written == [3]
    assert runner.iter == 3  # the stop waited with the save


def test_a_stop_in_the_middle_of_an_epoch_does_not_pretend_that_the_epoch_ended(tmp_path):
    tracer = Tracer()
    runner = make_runner(tmp_path, tracer, Ask(1), train_loader=batches(4))
    runner.train()
    assert "after_train_epoch" not in tracer.log
    assert (runner.epoch, runner.inner_iter) == (0, 2)


def test_hooks_may_add_to_the_checkpoint_by_argument(tmp_path):
    written = []

    class Add(BaseHook):
        def before_save_checkpoint(self, runner, checkpoint):
            checkpoint["mine"] = 1

    runner = make_runner(tmp_path, Add(), Ask(0, written.append))
    runner.train()
    assert written[0]["mine"] == 1
    assert runner.checkpoint is None


def test_a_save_request_without_a_checkpoint_hook_is_an_error(tmp_path):
    with pytest.raises(HooklineError, match="CheckpointHook"):
        make_runner(tmp_path).request_save()


def test_a_request_made_while_others_are_settled_is_not_lost(tmp_path):
    class SaveAfterValidation(BaseHook):
        def after_train_iter(self, runner):
            if runner.iter == 0:
                runner.request_validate()

        def after_val(self, runner):
            runner.request_stop("seen enough")

    runner = make_runner(tmp_path, SaveAfterValidation(), val_loader=batches(1))
    runner.train()
    assert (runner.iter, runner.stop_reason.message) == (1, "seen enough")


def test_a_save_requested_before_a_resumed_run_follows_its_first_iteration(tmp_path):
    written = []

    class AskBeforeTraining(BaseHook):
        def before_train(self, runner):
            runner.request_save(write=lambda checkpoint: written.append(checkpoint["meta"]["iter"]))

    make_runner(tmp_path, CheckpointHook(), max_epochs=1).train()
    resumed = make_runner(
        tmp_path, CheckpointHook(), AskBeforeTraining(), max_epochs=2, resume="auto"
    )
    resumed.train()
    assert written == [5]
