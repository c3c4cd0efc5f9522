"""Evaluation leaves no trace in the training, and what is asked for before training is done before it."""

from __future__ import annotations

import pytest
import torch

from hookline.engine import BaseHook
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook
from tests.helpers import Tracer, batches, make_runner


def test_what_is_asked_for_before_training_is_done_before_the_first_iteration(tmp_path):
    class Ask(BaseHook):
        def before_train(self, runner):
            runner.request_validate()
            runner.request_save("start")

    tracer = Tracer()
    make_runner(tmp_path, Ask(), CheckpointHook(save_best=False), tracer, val_loader=batches(1)).train()
    assert tracer.log.index("after_val") < tracer.log.index("before_save_checkpoint") < tracer.log.index("before_epoch")
    assert torch.load(tmp_path / "start.pth", weights_only=True)["meta"]["iter"] == 0


def test_a_stop_asked_for_before_training_stops_before_the_first_iteration(tmp_path):
    class Stop(BaseHook):
        def before_train(self, runner):
            runner.request_stop("not today")

    runner = make_runner(tmp_path, Stop()).train()
    assert (runner.iter, runner.stop_reason) == (0, "not today")


def test_what_a_hook_changes_for_an_evaluation_is_undone_also_when_it_fails_and_before_others_are_told(tmp_path):
    log = []

    class Change(BaseHook):
        def before_val_epoch(self, runner):
            runner.evaluation.undo_with(lambda: log.append("undone"))

        def before_val_iter(self, runner):
            raise RuntimeError("boom")

        def on_exception(self, runner):
            log.append(("told", runner.model.training, runner.batch))

    runner = make_runner(tmp_path, Change(), val_loader=batches(1))
    runner.model.train()
    with pytest.raises(RuntimeError, match="boom"):
        runner.validate()
    assert log == ["undone", ("told", True, None)]


def test_evaluating_without_data_says_so(tmp_path):
    with pytest.raises(HooklineError, match="there is no test_loader to evaluate on"):
        make_runner(tmp_path).test()
    with pytest.raises(HooklineError, match="there is no val_loader to evaluate on"):
        make_runner(tmp_path, val_loader={}).validate()


def test_batches_passed_over_count_as_read_but_not_as_iterations(tmp_path):
    seen = []

    class Look(BaseHook):
        def before_train(self, runner):
            runner.passed_over = {(0, 0), (1, 3)}

        def after_train_iter(self, runner):
            seen.append((runner.epoch, runner.batch_idx, runner.iter))

    runner = make_runner(tmp_path, Look()).train()
    assert seen == [(0, 1, 0), (0, 2, 1), (0, 3, 2), (1, 0, 3), (1, 1, 4), (1, 2, 5)]
    assert (runner.epoch, runner.inner_iter) == (2, 0)
