"""Weights are copied beside training only where nothing but the optimizer can change them meanwhile."""

from __future__ import annotations

import threading
import time

import pytest
import torch
from torch import nn

from hookline import Runner
from hookline.checkpoint import Snapshot, diff
from hookline.engine import BaseHook
from hookline.hooks import AmpOptimizerHook, CheckpointHook, EMAHook, GradientCumulativeOptimizerHook, LambdaHook, OptimizerHook
from tests.helpers import batches

CLOCKS = ("meta.time", "events.time", "events.data_time")


def shrink(model) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(0.9)  # of which torch keeps no record


class ClipBefore(BaseHook):
    def before_train_iter(self, model):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.clamp_(-0.2, 0.2)


class ShrinkAfter(BaseHook):
    def after_train_iter(self, model):
        shrink(model)


class ShrinkAtTheEnd(BaseHook):
    priority = "LOWEST"  # at after_train it comes first

    def after_train(self, model):
        shrink(model)


class NoisyOptimizer(OptimizerHook):
    def _backward(self, loss):
        shrink(self.runner.model)
        super()._backward(loss)


class Follower(nn.Module):
    """A model with a part that follows the rest, as a momentum encoder does."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.slow = nn.Linear(6, 3), nn.Linear(6, 3).requires_grad_(False)

    def forward(self, inputs):
        for slow, fast in zip(self.slow.parameters(), self.net.parameters(), strict=True):
            slow.data.lerp_(fast.data, 0.1)
        return self.net(inputs)


class OwnStep(nn.Linear):
    """A model that clips its own weights, as the critics of some GANs do."""

    def train_step(self, batch):
        shrink(self)
        return {"loss": nn.functional.cross_entropy(self(batch[0]), batch[1])}


def run(folder, *hooks, async_save=True, model=None) -> Runner:
    torch.manual_seed(0)
    model = nn.Linear(6, 3) if model is None else model()
    saves = CheckpointHook(interval=2, by_epoch=False, max_keep_ckpts=-1, async_save=async_save)
    runner = Runner(
        model, train_loader=batches(5), val_loader=batches(1), optimizer=torch.optim.AdamW(model.parameters()), work_dir=folder,
        loss_fn=nn.CrossEntropyLoss(), max_epochs=2, hooks=[*hooks, saves], drop_hooks=["LoggerHook"],
    )  # fmt: skip
    return runner.train()


@pytest.fixture
def slow_copy(monkeypatch):
    """The thread that copies and writes gets to it only after a few iterations."""
    complete = Snapshot.complete

    def later(self):
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.03)
        complete(self)

    monkeypatch.setattr(Snapshot, "complete", later)


@pytest.mark.parametrize(
    "hooks, model",
    [
        (lambda: [ClipBefore()], None),
        (lambda: [LambdaHook(after_forward=lambda model: shrink(model))], None),
        (lambda: [ShrinkAfter(), GradientCumulativeOptimizerHook(cumulative_iters=2)], None),
        (lambda: [NoisyOptimizer()], None),
        (lambda: [ShrinkAtTheEnd()], None),
        (list, Follower),
        (list, lambda: OwnStep(6, 3)),
    ],
    ids=["before the iteration", "a function", "accumulation", "optimizer", "at the end", "in the forward", "in a step of its own"],
)
def test_whoever_changes_weights_the_files_are_those_of_a_run_that_waits(tmp_path, slow_copy, hooks, model):
    kept = [run(tmp_path / name, *hooks(), async_save=name == "beside", model=model).store for name in ("beside", "waiting")]
    names = [[entry.names for entry in store.entries()] for store in kept]
    assert names[0] == names[1]
    assert len(names[0]) > 3
    for name, *_ in names[0]:
        one, two = (store.load(name) for store in kept)
        assert [text for text in diff(one, two) if not text.startswith(CLOCKS)] == []


def delayed(monkeypatch, folder, *hooks) -> set[bool]:
    """Whether saves left tensors to be copied later."""
    seen, take = set(), Snapshot.take

    def note(self, checkpoint, later=()):
        later = list(later)
        seen.add(bool(later))
        return take(self, checkpoint, later)

    monkeypatch.setattr(Snapshot, "take", note)
    run(folder, *hooks)
    return seen


def test_with_hooks_of_ours_alone_the_copy_is_made_beside_training(tmp_path, monkeypatch):
    ours = [{"type": name} for name in ("GradientFlowHook", "CheckInvalidLossHook", "HistogramHook", "RollbackHook", "EarlyStoppingHook")]
    assert delayed(monkeypatch, tmp_path, AmpOptimizerHook(), EMAHook(), {"type": "hookline.verify.BatchTraceHook"}, *ours) == {True}


def test_a_hook_that_comes_after_the_step_does_not_make_training_wait(tmp_path, monkeypatch):
    class Watch(BaseHook):
        def after_backward(self, runner): ...  # there we have waited for the copy already

        def after_train_iter(self, runner): ...

        def after_epoch(self, runner): ...

    assert delayed(monkeypatch, tmp_path, Watch()) == {True}
    assert delayed(monkeypatch, tmp_path / "clip", ClipBefore()) == {False}
