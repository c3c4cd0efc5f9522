"""The sanity validation before the first epoch."""

from __future__ import annotations

import random
from itertools import cycle

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from hookline import BaseHook, ConfigError, Runner
from hookline.hooks import CheckpointHook, StopAtHook


class Net(nn.Module):
    """Draws random numbers, and changes a buffer, in every phase."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.layer = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2)
        )
        self.register_buffer("calls", torch.zeros(1))
        self.fails = fails
        self.validated = 0

    def forward(self, inputs):
        self.calls += 1
        noise = torch.rand(1) + random.random() + float(np.random.rand())
        return self.layer(inputs) * noise

    def val_step(self, batch):
        self.validated += 1
        if self.fails:
            raise RuntimeError("wrong shape")
        predictions = self(batch[0])
        return {
            "loss": nn.functional.cross_entropy(predictions, batch[1]),
            "predictions": predictions,
            "targets": batch[1],
        }


class Counted:
    """A metric that counts, across resets, how often it was used."""

    def __init__(self) -> None:
        self.updates = 0

    def update(self, predictions, targets):
        self.updates += 1

    def compute(self):
        return float(self.updates)

    def reset(self):
        pass


class NeedsMore(Counted):
    """A metric that cannot be computed from a few samples."""

    def compute(self):
        if self.updates < 4:
            raise ValueError("only one class is present")
        return 0.5


class Stream(IterableDataset):
    def __init__(self) -> None:
        self.read = 0

    def __iter__(self):
        for batch in DATA:
            self.read += 1
            yield batch


DATA = TensorDataset(
    torch.randn(32, 4, generator=torch.Generator().manual_seed(0)), torch.arange(32) % 2
)


def make_runner(work_dir, *hooks, model=None, **parts) -> Runner:
    torch.manual_seed(0)
    model = model or Net()
    given = {
        "train_loader": DataLoader(DATA, 8, shuffle=True),
        "val_loader": DataLoader(DATA, 8, shuffle=True),
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "loss_fn": nn.CrossEntropyLoss(),
        "max_epochs": 2,
        "seed": 1,
    }
    return Runner(model, work_dir=work_dir, hooks=hooks, **{**given, **parts})


def final_state(runner: Runner) -> list[torch.Tensor]:
    runner.train()
    return [*(value.clone() for value in runner.model.state_dict().values()), torch.rand(3)]


def test_an_error_in_validation_code_surfaces_before_the_first_iteration(tmp_path):
    runner = make_runner(tmp_path, model=Net(fails=True))
    with pytest.raises(RuntimeError, match="wrong shape") as caught:
        runner.train()
    assert runner.iter == 0
    assert any("sanity_val_batches=0" in note for note in caught.value.__notes__)


def test_runs_with_and_without_it_are_identical(tmp_path):
    with_it = final_state(make_runner(tmp_path / "with"))
    without = final_state(make_runner(tmp_path / "without", sanity_val_batches=0))
    assert all(torch.equal(one, two) for one, two in zip(with_it, without, strict=True))
    logs = [(tmp_path / name / "log.jsonl").read_text() for name in ("with", "without")]
    assert logs[0].count("\n") == logs[1].count("\n")


class Carries(nn.Module):
    """Assigns other tensors to its buffers, as a model with a carried state does."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 2)
        self.register_buffer("state", torch.zeros(2))
        self.register_buffer("last", None)
        self.register_buffer("steps", torch.zeros(1), persistent=False)

    def val_step(self, batch):
        scores = self.layer(batch[0])
        self.state = self.state + 1
        self.last = scores
        self.steps = self.steps + 1
        return {"loss": nn.functional.cross_entropy(scores, batch[1])}

    def train_step(self, batch):
        return self.val_step(batch)


def test_buffers_to_which_a_step_assigns_other_tensors_are_restored(tmp_path):
    seen = {}

    class AtStart(BaseHook):
        def before_epoch(self, runner, model):
            if runner.epoch == 0:
                seen.update(state=model.state, last=model.last, steps=model.steps)

    model = Carries()
    state = model.state
    make_runner(tmp_path, AtStart(), model=model, max_epochs=1).train()
    assert seen["state"] is state
    assert seen["last"] is None
    assert [*seen["state"].tolist(), *seen["steps"].tolist()] == [0.0, 0.0, 0.0]


def test_it_reads_a_few_batches_and_leaves_metrics_mode_and_results_alone(tmp_path):
    class AtStart(BaseHook):
        def before_epoch(self, runner):
            if runner.epoch == 0:
                metric = runner.evaluation.metrics["counted"]
                self.seen = (metric.updates, runner.model.training, dict(runner.metrics))
                self.tried = runner.model.validated

    start = AtStart()
    make_runner(tmp_path, start, metrics={"counted": Counted()}, sanity_val_batches=3).train()
    assert start.seen == (0, True, {})
    assert start.tried == 3


def test_a_resumed_run_has_none(tmp_path):
    make_runner(tmp_path, StopAtHook(epoch=1), CheckpointHook()).train()
    model = Net()
    make_runner(tmp_path, model=model, resume="auto").train()
    assert model.validated == len(DATA) // 8  # one epoch


def test_metrics_that_need_more_samples_are_no_error(tmp_path):
    runner = make_runner(tmp_path, metrics={"auroc": NeedsMore()}).train()
    assert runner.metrics["auroc"] == 0.5


def test_a_metric_that_fails_is_reported_with_its_input(tmp_path):
    def broken(predictions, targets):
        raise TypeError("no such argument")

    runner = make_runner(tmp_path, metrics={"broken": broken})
    with pytest.raises(TypeError, match="no such argument"):
        runner.train()
    assert runner.iter == 0


def test_streams_and_hooks_that_replace_batches_are_left_alone(tmp_path):
    class Replace(BaseHook):
        def before_val_iter(self, runner):
            pass

    stream = Stream()
    read = []

    class Note(BaseHook):
        def before_epoch(self, runner):
            read.append((stream.read, runner.model.validated))

    make_runner(tmp_path / "stream", Note(), val_loader=DataLoader(stream, 8), max_epochs=1).train()
    make_runner(tmp_path / "hook", Note(), Replace(), max_epochs=1).train()
    assert read[0] == (0, 0)
    assert read[1][1] == 0


class Endless(IterableDataset):
    def __iter__(self):
        return cycle(DATA)


@pytest.mark.parametrize(
    "parts", [{"val_loader": DataLoader(Endless(), 8)}, {"val_loader": cycle([1])}]
)
def test_an_endless_validation_is_refused_before_training(tmp_path, parts):
    train_loader = DataLoader(Endless(), 8)
    runner = make_runner(tmp_path, train_loader=train_loader, max_epochs=None, max_iters=4, **parts)
    with pytest.raises(ConfigError) as caught:
        runner.train()
    assert caught.value.parameter == "max_val_batches"
    assert runner.iter == 0


def test_an_endless_stream_is_validated_and_saved_at_intervals(tmp_path, caplog):
    class Note(BaseHook):
        def __init__(self) -> None:
            self.validated: list[int] = []
            self.saved: list[int] = []

        def after_val(self, runner):
            self.validated.append(runner.iter)

        def after_save_checkpoint(self, runner):
            self.saved.append(runner.iter)

    note = Note()
    with caplog.at_level("INFO", logger="hookline"):
        make_runner(
            tmp_path,
            note,
            train_loader=DataLoader(Endless(), 8),
            val_loader=DataLoader(Endless(), 8),
            max_val_batches=2,
            max_epochs=None,
            max_iters=105,
        ).train()
    assert note.validated == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert note.saved[-1] == 105
    assert set(note.validated) <= set(note.saved)
    assert any("iter 50/105" in record.getMessage() for record in caplog.records)


class Finite(IterableDataset):
    def __iter__(self):
        return iter(DATA)


def test_a_validation_loader_without_a_length_is_announced_before_a_run_by_epochs(tmp_path, caplog):
    def announced(folder, **parts) -> list[str]:
        caplog.clear()
        make_runner(tmp_path / folder, max_epochs=1, **parts).train()
        return [text for text in caplog.messages if "max_val_batches" in text]

    stream = DataLoader(Finite(), 8)
    (message,) = announced("single", val_loader=stream)
    assert message.startswith("val_loader (DataLoader)")
    (message,) = announced("named", val_loader={"a": [DATA[:8]], "b": stream})
    assert message.startswith("val_loader 'b' (DataLoader)")
    assert announced("limited", val_loader=stream, max_val_batches=9) == []
    assert announced("known", val_loader=[DATA[:8]]) == []


def test_a_training_loader_without_a_length_is_announced_in_a_run_by_epochs(tmp_path, caplog):
    def announced(folder, **parts) -> list[str]:
        caplog.clear()
        make_runner(tmp_path / folder, **parts).train()
        return [text for text in caplog.messages if "no epoch does" in text]

    stream = DataLoader(Finite(), 8)
    (message,) = announced("stream", train_loader=stream, max_epochs=2)
    assert message.startswith("train_loader (DataLoader) has no length")
    assert "max_iters=" in message
    assert announced("iters", train_loader=stream, max_epochs=None, max_iters=4) == []
    assert announced("limited", train_loader=stream, max_epochs=2, max_train_batches=3) == []
    assert announced("known", max_epochs=2) == []


def test_a_stream_with_a_length_and_a_run_by_epochs_need_no_limit(tmp_path):
    finite = DataLoader(Finite(), 8)
    make_runner(tmp_path / "epochs", train_loader=finite, val_loader=finite, max_epochs=1).train()
    make_runner(
        tmp_path / "iters", train_loader=finite, max_epochs=None, max_iters=6, val_loader=[DATA[:8]]
    ).train()
