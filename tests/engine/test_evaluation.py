"""Evaluation leaves no trace in the training, and what is asked for before training is done before it."""

from __future__ import annotations

import json

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.engine import BaseHook
from hookline.errors import HooklineError
from hookline.hooks import CheckpointHook, EvalHook
from hookline.metrics.means import Accuracy
from tests.helpers import Tracer, batches, make_runner, small_model
from tests.problems import raises_problem


def test_what_is_asked_for_before_training_is_done_before_the_first_iteration(tmp_path):
    class Ask(BaseHook):
        def before_train(self, runner):
            runner.request_validate()
            runner.request_save("start")

    tracer = Tracer()
    make_runner(
        tmp_path, Ask(), CheckpointHook(save_best=False), tracer, val_loader=batches(1)
    ).train()
    assert (
        tracer.log.index("after_val")
        < tracer.log.index("before_save_checkpoint")
        < tracer.log.index("before_epoch")
    )
    assert torch.load(tmp_path / "start.pth", weights_only=True)["meta"]["iter"] == 0


def test_a_stop_asked_for_before_training_stops_before_the_first_iteration(tmp_path):
    class Stop(BaseHook):
        def before_train(self, runner):
            runner.request_stop("not today")

    runner = make_runner(tmp_path, Stop()).train()
    assert (runner.iter, runner.stop_reason.message) == (0, "not today")


def test_changes_for_an_evaluation_are_undone_before_on_exception_runs(
    tmp_path,
):
    log = []

    class Change(BaseHook):
        def before_val_epoch(self, runner):
            runner.evaluation.on_end(lambda: log.append("undone"))

        def before_val_iter(self, runner):
            raise RuntimeError("boom")

        def on_exception(self, runner):
            log.append(("told", runner.model.training, runner.batch))

    runner = make_runner(tmp_path, Change(), val_loader=batches(1))
    runner.model.train()
    with pytest.raises(RuntimeError, match="boom"):
        runner.validate()
    assert log == ["undone", ("told", True, None)]


def test_evaluating_without_data_is_an_error(tmp_path):
    with pytest.raises(HooklineError, match="test_loader"):
        make_runner(tmp_path).test()
    with pytest.raises(HooklineError, match="val_loader"):
        make_runner(tmp_path, val_loader={}).validate()


@pytest.mark.parametrize("loader", [[], {"good": batches(1), "bad": []}])
def test_a_validation_loader_without_batches_is_an_error_before_training(tmp_path, loader):
    runner = make_runner(tmp_path, train_loader=batches(2), val_loader=loader)
    with raises_problem(HooklineError, parameter="val_loader"):
        runner.train()
    assert runner.iter == 0


def test_an_evaluation_that_reads_no_batches_is_an_error(tmp_path):
    class Empty:
        def __iter__(self):
            return iter(())

    with pytest.raises(HooklineError, match="val_loader"):
        make_runner(tmp_path, val_loader=Empty(), metrics={"accuracy": Accuracy()}).validate()


class OwnSteps(nn.Module):
    """A model with an own `val_step` that returns more than the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)

    def train_step(self, batch):
        return self.val_step(batch)

    def val_step(self, batch):
        inputs, targets = batch
        scores = self.layer(inputs)
        loss = nn.functional.cross_entropy(scores, targets)
        more = {"size": len(targets), "top": scores.max().detach(), "accuracy": 7.0}
        unknown = {"flag": True, "text": "a", "vector": scores[0], "num_samples": len(targets)}
        return {"loss": loss, "predictions": scores, "targets": targets, **more, **unknown}


def test_numbers_that_a_models_val_step_returns_are_metrics(tmp_path):
    data = batches(3)
    data[2] = tuple(part[:1] for part in data[2])
    runner = make_runner(
        tmp_path,
        EvalHook(),
        {"type": "LoggerHook"},
        {"type": "EarlyStoppingHook", "monitor": "top", "mode": "max"},
        model=OwnSteps(),
        train_loader=data,
        val_loader=data,
        metrics={"accuracy": Accuracy()},
        max_epochs=1,
    )
    runner.train()
    sizes = [len(targets) for _, targets in data]
    tops = [runner.model.layer(inputs).max().item() for inputs, _ in data]
    mean_top = sum(size * top for size, top in zip(sizes, tops, strict=True)) / sum(sizes)
    assert set(runner.metrics) == {"size", "top", "accuracy", "val_loss"}
    assert runner.metrics["size"] == pytest.approx(sum(n * n for n in sizes) / sum(sizes))
    assert runner.metrics["top"] == pytest.approx(mean_top)
    assert runner.metrics["accuracy"] <= 1  # a metric of the same name wins
    (row,) = (
        row
        for line in (tmp_path / "log.jsonl").read_text().splitlines()
        if (row := json.loads(line))["mode"] == "val"
    )
    assert row["top"] == pytest.approx(mean_top)


class Reconstructs(nn.Module):
    """A model whose `val_step` returns parts of its loss, and no targets."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def train_step(self, batch):
        return self.val_step(batch)

    def val_step(self, batch):
        distortion = (self.layer(batch[0]) - batch[0]).square().mean()
        return {"distortion": distortion, "num_tokens": 6 * len(batch[0]), "loss": distortion}


def test_the_best_model_has_the_lowest_loss_whatever_else_a_val_step_returns(tmp_path):
    runner = make_runner(
        tmp_path,
        EvalHook(),
        CheckpointHook(),
        model=Reconstructs(),
        val_loader=batches(3),
        loss_fn=None,
    ).train()
    assert set(runner.metrics) == {"val_loss", "distortion"}
    assert set(runner.best) == {"val_loss"}
    assert runner.best["val_loss"]["rule"] == "less"
    assert (tmp_path / "best_val_loss.pth").is_file()


def test_batches_passed_over_count_as_read_but_not_as_iterations(tmp_path):
    seen = []

    class Look(BaseHook):
        def before_train(self, runner):
            runner.loop.skipped_batches = {(0, 0), (1, 3)}

        def after_train_iter(self, runner):
            seen.append((runner.epoch, runner.batch_idx, runner.iter))

    runner = make_runner(tmp_path, Look()).train()
    assert seen == [(0, 1, 0), (0, 2, 1), (0, 3, 2), (1, 0, 3), (1, 1, 4), (1, 2, 5)]
    assert (runner.epoch, runner.inner_iter) == (2, 0)


def test_the_runner_knows_which_of_its_three_kinds_of_run_it_is_in(tmp_path):
    class Notes(BaseHook):
        modes = []

        def before_run(self, runner):
            self.modes.append(runner.mode)

        before_val_iter = after_test = before_train_iter = before_run

    runner = make_runner(
        tmp_path,
        Notes(),
        EvalHook(),
        train_loader=batches(1),
        val_loader=batches(1),
        test_loader=batches(1),
        max_epochs=1,
    )
    runner.test()
    runner.train()
    runner.validate()
    assert Notes.modes == [
        "test",
        "test",
        "train",
        "train",
        "train",
        "val",
        "val",
    ]  # a validation in training is a part of it


def test_a_checkpoint_is_evaluated_as_of_its_epoch_and_a_training_that_follows_begins_at_the_beginning(
    tmp_path,
):
    class Notes(BaseHook):
        def after_test_epoch(self, runner):
            self.seen = runner.epoch, runner.iter, runner.inner_iter

    make_runner(tmp_path / "first", CheckpointHook(), max_epochs=3).train()
    notes = Notes()
    parts = {
        "val_loader": batches(1),
        "test_loader": batches(1),
        "load_from": tmp_path / "first" / "epoch_2.pth",
    }
    runner = make_runner(tmp_path / "second", notes, max_epochs=1, **parts)
    runner.test()
    assert notes.seen == (1, 8, 4)  # as in the training's own validation after the second epoch
    runner.validate()
    assert (runner.epoch, runner.iter, runner.best) == (0, 0, {})
    assert runner.train().iter == 4


def test_weights_of_elsewhere_have_no_place_in_a_run_to_be_evaluated_at(tmp_path):
    torch.save(small_model(seed=3).state_dict(), tmp_path / "plain.pth")
    runner = make_runner(tmp_path, test_loader=batches(1), load_from=tmp_path / "plain.pth")
    assert runner.test()["test_loss"] > 0
    assert runner.iter == 0


def test_a_validation_reads_at_most_max_val_batches_of_each_loader(tmp_path):
    class Count(BaseHook):
        def __init__(self) -> None:
            self.counts = {"val": 0, "test": 0}

        def after_val_iter(self, runner):
            self.counts["val"] += 1

        def after_test_iter(self, runner):
            self.counts["test"] += 1

    count = Count()
    model = small_model()
    runner = Runner(
        model,
        train_loader=batches(2),
        val_loader={"short": batches(1), "long": batches(5)},
        test_loader=batches(5),
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=1,
        max_val_batches=3,
        work_dir=tmp_path,
        hooks=[count],
    ).train()
    assert count.counts["val"] == 1 + 3
    runner.test()
    assert count.counts["test"] == 5


def test_a_runner_may_be_tested_on_other_data(tmp_path):
    own, other = batches(2), batches(3, seed=5)
    parts = {"loss_fn": nn.CrossEntropyLoss(), "metrics": ["accuracy"]}
    runner = Runner(small_model(), **parts, test_loader=own, work_dir=tmp_path)
    on_own = runner.test()
    on_other = runner.test(other)
    assert runner.test_loader is own
    assert on_other == Runner(small_model(), **parts, test_loader=other, work_dir=tmp_path).test()
    assert on_other != on_own
    with pytest.raises(HooklineError):
        runner.test(3)
