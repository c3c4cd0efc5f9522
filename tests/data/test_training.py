"""The loaders that a Runner trains on."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hookline import Runner
from hookline.data import CombinedLoader, prepare_training_data
from hookline.engine import BaseHook
from hookline.hooks import StopAtHook

DATA = TensorDataset(torch.arange(40.0).reshape(20, 2), torch.arange(20) % 2)


class Seen(BaseHook):
    """The samples of each iteration."""

    def __init__(self):
        self.rows = []

    def after_train_iter(self, runner):
        batch = runner.batch
        parts = batch.values() if isinstance(batch, dict) else [batch]
        self.rows.append([part[0][:, 0].tolist() for part in parts])


class TwoTasks(nn.Module):
    """A model that trains on one batch of each of two loaders."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def train_step(self, batch):
        losses = []
        for inputs, targets in batch.values():
            losses.append(nn.functional.cross_entropy(self.layer(inputs / 40), targets))
        return {"loss": sum(losses)}


def shuffled(batch_size):
    return DataLoader(DATA, batch_size, shuffle=True)


def train(folder, loader, stop_at=None, hooks=(), **options):
    torch.manual_seed(0)
    model = TwoTasks() if not isinstance(loader, DataLoader) else nn.Linear(2, 2)
    seen = Seen()
    stop = [] if stop_at is None else [StopAtHook(iter=stop_at)]
    runner = Runner(
        model,
        train_loader=loader,
        optimizer=torch.optim.AdamW(model.parameters()),
        loss_fn=nn.CrossEntropyLoss(),
        hooks=[seen, *stop, *hooks],
        drop_hooks=["LoggerHook", "ReportHook"],
        work_dir=folder,
        max_epochs=3,
        seed=1,
        resume="auto",
        **options,
    )
    runner.train()
    return seen.rows, [each.tolist() for each in model.parameters()]


@pytest.mark.parametrize("cut", [1, 3, 5, 8])
def test_several_loaders_by_name_are_read_together_and_continue_exactly(tmp_path, cut):
    def make():
        return {"a": shuffled(4), "b": shuffled(8)}

    rows, weights = train(tmp_path / "straight", make())
    assert len(rows) == 15  # three epochs of the longer loader
    assert [len(part) for part in rows[0]] == [4, 8]
    before, _ = train(tmp_path / "cut", make(), stop_at=cut)
    after, resumed = train(tmp_path / "cut", make())
    assert before + after == rows
    assert resumed == weights


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_an_epoch_has_at_most_max_train_batches_and_continues_exactly(tmp_path, cut):
    rows, weights = train(tmp_path / "straight", shuffled(4), max_train_batches=2)
    assert len(rows) == 6
    assert rows[0] != rows[2]
    before, _ = train(tmp_path / "cut", shuffled(4), stop_at=cut, max_train_batches=2)
    after, resumed = train(tmp_path / "cut", shuffled(4), max_train_batches=2)
    assert before + after == rows
    assert resumed == weights


class Choose(BaseHook):
    """Chooses the training data at the beginning of each epoch, by a function."""

    def __init__(self, function):
        self.function = function

    def before_train_epoch(self, runner):
        runner.set_train_loader(self.function(runner))


@pytest.mark.parametrize("cut", [None, 1, 5, 7])
def test_several_loaders_that_a_hook_chooses_are_read_together_and_continue_exactly(tmp_path, cut):
    def run(folder, stop_at=None):
        choose = Choose(lambda runner: {"a": shuffled(5 - runner.epoch), "b": shuffled(8)})
        return train(folder, {"a": shuffled(4)}, stop_at, hooks=[choose])

    rows, weights = run(tmp_path / "straight")
    assert [len(part) for part in rows[0]] == [5, 8]
    assert len(rows) == 4 + 5 + 7
    before, _ = run(tmp_path / "cut", stop_at=cut)
    after, resumed = run(tmp_path / "cut")
    assert before + after == rows
    assert resumed == weights


@pytest.mark.parametrize("option", ["max_train_batches", "overfit_batches"])
def test_data_that_a_hook_chooses_is_limited_as_the_first(tmp_path, option):
    def choose(runner):
        return shuffled(2) if runner.epoch == 1 else runner.train_loader

    rows, _ = train(tmp_path, shuffled(4), hooks=[Choose(choose)], **{option: 3})
    assert [len(samples) for [samples] in rows] == 3 * [4] + 3 * [2] + 3 * [2]


def test_overfit_batches_are_the_first_of_the_dataset_in_every_epoch(tmp_path):
    rows, _ = train(tmp_path, shuffled(4), overfit_batches=2)
    assert rows == 3 * [[[0.0, 2.0, 4.0, 6.0]], [[8.0, 10.0, 12.0, 14.0]]]


@pytest.mark.parametrize("site", ["before_train_iter", "after_train_iter", "after_train_epoch"])
def test_after_an_error_the_next_call_continues_the_epoch(tmp_path, site):
    class FailOnce(BaseHook):
        failed = False

        def fail(self, runner):
            if runner.inner_iter >= 3 and not self.failed:
                self.failed = True
                raise ValueError

    setattr(FailOnce, site, FailOnce.fail)
    seen = Seen()
    model = nn.Linear(2, 2)
    runner = Runner(
        model,
        train_loader=shuffled(4),
        optimizer=torch.optim.AdamW(model.parameters()),
        loss_fn=nn.CrossEntropyLoss(),
        hooks=[seen, FailOnce()],
        drop_hooks=["LoggerHook", "ReportHook"],
        work_dir=tmp_path,
        max_epochs=2,
    )
    with pytest.raises(ValueError):
        runner.train()
    runner.train()
    assert (runner.epoch, runner.iter) == (2, 10)
    first_epoch = {value for [samples] in seen.rows[:-5] for value in samples}
    assert first_epoch == {2.0 * number for number in range(20)}


@pytest.mark.parametrize("max_batches", [None, 2])
def test_loaders_may_be_prepared_again(max_batches, caplog):
    for loader in (shuffled(4), {"a": shuffled(4), "b": shuffled(2)}):
        options = {"seed": 3, "rank": 0, "world_size": 2, "max_batches": max_batches}
        once = prepare_training_data(loader, **options)
        twice = prepare_training_data(once, **options)
        assert len(twice) == len(once) == (max_batches or len(once))
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


def test_each_rank_gets_its_share_of_every_combined_loader():
    combined = CombinedLoader({"a": shuffled(4), "b": shuffled(2)}, mode="min_size")
    samples = []
    for rank in range(2):
        loader = prepare_training_data(combined, seed=3, rank=rank, world_size=2)
        assert len(loader) == 3
        for batch in loader:
            samples += batch["a"][0][:, 0].tolist()
    assert sorted(samples) == [2.0 * number for number in range(20)]
