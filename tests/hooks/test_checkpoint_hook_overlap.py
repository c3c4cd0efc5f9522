"""Checkpoints that are written while training continues."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn

from hookline import ConfigError, Runner
from hookline.checkpoint import CheckpointError, CheckpointStore, FileSystem, diff
from hookline.checkpoint.snapshot import PostponedCopies
from hookline.checkpoint.writer import BackgroundWriter
from hookline.engine import BaseHook
from hookline.hooks import (
    CheckpointHook,
    GradientCumulativeOptimizerHook,
    LambdaHook,
    OptimizerHook,
    SAMHook,
)
from tests.helpers import batches
from tests.optim.schedule_free import ScheduleFreeSGD
from tests.waiting import LIMIT_S, wait_until

CLOCKS = ("meta.time", "events.time", "events.data_time", "events.eta")


def shrink(model: nn.Module) -> None:
    """Change weights without a trace in torch's version counters."""
    for parameter in model.parameters():
        parameter.data.mul_(0.9)
        parameter.detach().numpy()[:] *= 0.9


class ClipBefore(BaseHook):
    def before_train_iter(self, model):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.clamp_(-0.2, 0.2)


class ShrinkAfter(BaseHook):
    def after_train_iter(self, model):
        shrink(model)


class ShrinkAtTheEnd(BaseHook):
    priority = "LOWEST"  # runs first at after_train

    def after_train(self, model):
        shrink(model)


class ShrinkingOptimizer(OptimizerHook):
    def _backward(self, loss):
        shrink(self.runner.model)
        super()._backward(loss)


class MomentumEncoder(nn.Module):
    """A model with a part that follows the rest in the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(6, 3)
        self.slow = nn.Linear(6, 3).requires_grad_(False)

    def forward(self, inputs):
        for slow, fast in zip(self.slow.parameters(), self.net.parameters(), strict=True):
            slow.data.lerp_(fast.data, 0.1)
        return self.net(inputs)


class ShrinkingForward(nn.Linear):
    """A model that changes its weights in the forward pass, through `.data` and NumPy."""

    def forward(self, inputs):
        shrink(self)
        return super().forward(inputs)


class ShrinkingStep(nn.Linear):
    """A model with its own training step that changes the weights, as critics of GANs do."""

    def train_step(self, batch):
        shrink(self)
        return {"loss": nn.functional.cross_entropy(self(batch[0]), batch[1])}


def make_runner(folder, *hooks, async_save=True, model=None, optimizers=None, **saving) -> Runner:
    torch.manual_seed(0)
    model = nn.Linear(6, 3) if model is None else model()
    optimizers = optimizers or (lambda model: torch.optim.AdamW(model.parameters()))
    options = {"interval": 2, "by_epoch": False, "max_keep_ckpts": -1, **saving}
    return Runner(
        model,
        train_loader=batches(5),
        val_loader=batches(1),
        optimizer=optimizers(model),
        work_dir=folder,
        loss_fn=nn.CrossEntropyLoss(),
        max_epochs=2,
        hooks=[*hooks, CheckpointHook(async_save=async_save, **options)],
        drop_hooks=["LoggerHook"],
    )


@pytest.fixture
def late_write(monkeypatch):
    """Write each file as late as possible: when training waits for it."""
    submit = BackgroundWriter.submit
    wait = BackgroundWriter.wait
    training_waits = threading.Event()

    def submit_late(self, job):
        def write_late():
            training_waits.wait(LIMIT_S)
            job()

        wait(self)
        training_waits.clear()
        submit(self, write_late)

    def wait_for_file(self):
        if self._thread is not None:
            training_waits.set()
        wait(self)

    monkeypatch.setattr(BackgroundWriter, "submit", submit_late)
    monkeypatch.setattr(BackgroundWriter, "wait", wait_for_file)


@pytest.mark.parametrize(
    "hooks, model",
    [
        (lambda: [ClipBefore()], None),
        (lambda: [LambdaHook(after_forward=lambda model: shrink(model))], None),
        (lambda: [ShrinkAfter(), GradientCumulativeOptimizerHook(cumulative_iters=2)], None),
        (lambda: [ShrinkingOptimizer()], None),
        (lambda: [ShrinkAtTheEnd()], None),
        (list, MomentumEncoder),
        (list, lambda: ShrinkingForward(6, 3)),
        (list, lambda: ShrinkingStep(6, 3)),
    ],
    ids=[
        "before the iteration",
        "after the forward",
        "with accumulation",
        "in the optimizer hook",
        "at the end",
        "in a momentum encoder",
        "in the forward",
        "in the training step",
    ],
)
def test_background_saves_equal_those_of_a_run_that_waits(tmp_path, late_write, hooks, model):
    stores = []
    for async_save in (True, False):
        folder = tmp_path / f"async_{async_save}"
        make_runner(folder, *hooks(), async_save=async_save, model=model).train()
        stores.append(CheckpointStore(folder))
    beside, waiting = stores
    names = [entry.names for entry in beside.entries()]
    assert names == [entry.names for entry in waiting.entries()]
    assert len(names) > 3
    for name, *_ in names:
        differences = diff(beside.load(name), waiting.load(name))
        assert [text for text in differences if not text.startswith(CLOCKS)] == []


class Gate(FileSystem):
    """A disk whose writes of the background thread block while the gate is closed."""

    def __init__(self) -> None:
        self.is_open = threading.Event()

    def write(self, descriptor, data):
        if threading.current_thread() is not threading.main_thread():
            self.is_open.wait(LIMIT_S)
        return super().write(descriptor, data)


class SlowDisk(BaseHook):
    """Makes the first save wait for iteration `until`, and records the files at that moment."""

    priority = "HIGHEST"

    def __init__(self, until: int) -> None:
        self.until = until
        self.saved: list[int] = []
        self.gate = Gate()

    def before_train_iter(self, runner):
        if runner.iter == 0:
            runner.checkpointer.store._fs = self.gate
        if runner.iter == self.until:
            self.saved = [entry.step for entry in runner.checkpointer.store.entries()]
            self.gate.is_open.set()


def test_training_continues_while_the_disk_is_slow(tmp_path):
    disk = SlowDisk(until=8)
    make_runner(tmp_path, disk, interval=5).train()
    assert disk.saved == []  # iterations 6 to 8 ran before the save of iteration 5 was done
    steps = [entry.step for entry in CheckpointStore(tmp_path).entries()]
    assert 5 in steps
    assert 10 in steps


def test_the_next_save_waits_for_the_slow_disk(tmp_path):
    disk = SlowDisk(until=1_000_000)
    runner = make_runner(tmp_path, disk, interval=5)
    training = threading.Thread(target=runner.train, daemon=True)
    training.start()
    wait_until(lambda: runner.iter == 10, "iteration 10")
    assert CheckpointStore(tmp_path).entries() == []
    disk.gate.is_open.set()
    training.join(LIMIT_S)
    assert not training.is_alive()
    steps = [entry.step for entry in CheckpointStore(tmp_path).entries()]
    assert steps[0] == 5
    assert steps[-1] == 10


class LateCopies:
    """Postpones copies until training waits for them, and notes how many there were."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waited_in_steps = 0
        self._training_waits = threading.Event()
        run = PostponedCopies.run
        wait = PostponedCopies.wait
        wait_for_file = BackgroundWriter.wait

        def run_late(copies):
            if not copies._made.is_set():
                self._training_waits.wait(LIMIT_S)
            run(copies)

        def wait_in_step(copies):
            self.waited_in_steps += not copies._made.is_set()
            self._training_waits.set()
            wait(copies)

        def wait_at_end(writer):
            self._training_waits.set()
            wait_for_file(writer)
            self._training_waits.clear()

        monkeypatch.setattr(PostponedCopies, "run", run_late)
        monkeypatch.setattr(PostponedCopies, "wait", wait_in_step)
        monkeypatch.setattr(BackgroundWriter, "wait", wait_at_end)


def in_two_parts(model: nn.Module) -> dict[str, torch.optim.Optimizer]:
    """Return an optimizer for each parameter of a linear layer."""
    weight, bias = model.parameters()
    return {"one": torch.optim.AdamW([weight]), "other": torch.optim.SGD([bias], 0.1, 0.9)}


@pytest.mark.parametrize(
    ("hooks", "optimizers"),
    [
        (list, None),
        (lambda: [GradientCumulativeOptimizerHook(cumulative_iters=2)], None),
        (lambda: [ShrinkAtTheEnd()], None),
        (list, in_two_parts),
        (lambda: [SAMHook()], None),
        (list, lambda model: ScheduleFreeSGD(model.parameters(), beta=0.7)),
    ],
    ids=[
        "plainly",
        "with accumulation",
        "with a change at the end",
        "with two optimizers",
        "with moved weights",
        "with a switched optimizer",
    ],
)
def test_the_optimizer_steps_after_the_overlapped_copy(tmp_path, monkeypatch, hooks, optimizers):
    late = LateCopies(monkeypatch)
    stores = []
    for overlap_copy in (True, False):
        folder = tmp_path / f"overlap_{overlap_copy}"
        options = {"overlap_copy": overlap_copy, "optimizers": optimizers, "interval": 1}
        runner = make_runner(folder, *hooks(), **options)
        runner.train()
        stores.append(CheckpointStore(folder))
    assert late.waited_in_steps >= 3
    beside, before = stores
    names = [entry.names for entry in beside.entries()]
    assert names == [entry.names for entry in before.entries()]
    assert len(names) > 3
    for name, *_ in names:
        differences = diff(beside.load(name), before.load(name))
        assert [text for text in differences if not text.startswith(CLOCKS)] == []


def test_weights_that_change_during_the_overlapped_copy_end_the_run(tmp_path, monkeypatch):
    LateCopies(monkeypatch)
    with pytest.raises(CheckpointError):
        make_runner(tmp_path, ClipBefore(), overlap_copy=True).train()
    assert CheckpointStore(tmp_path).entries() == []


def test_an_overlapped_copy_needs_a_thread():
    with pytest.raises(ConfigError) as caught:
        CheckpointHook(overlap_copy=True, async_save=False)
    assert caught.value.parameter == "overlap_copy"
