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


def train(folder, loader, stop_at=None, **options):
    torch.manual_seed(0)
    model = TwoTasks() if not isinstance(loader, DataLoader) else nn.Linear(2, 2)
    seen = Seen()
    stop = [] if stop_at is None else [StopAtHook(iter=stop_at)]
    runner = Runner(
        model,
        train_loader=loader,
        optimizer=torch.optim.AdamW(model.parameters()),
        loss_fn=nn.CrossEntropyLoss(),
        hooks=[seen, *stop],
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


def test_overfit_batches_are_the_first_of_the_dataset_in_every_epoch(tmp_path):
    rows, _ = train(tmp_path, shuffled(4), overfit_batches=2)
    assert rows == 3 * [[[0.0, 2.0, 4.0, 6.0]], [[8.0, 10.0, 12.0, 14.0]]]


def test_each_rank_gets_its_share_of_every_combined_loader():
    combined = CombinedLoader({"a": shuffled(4), "b": shuffled(2)}, mode="min_size")
    samples = []
    for rank in range(2):
        loader = prepare_training_data(combined, seed=3, rank=rank, world_size=2)
        assert len(loader) == 3
        for batch in loader:
            samples += batch["a"][0][:, 0].tolist()
    assert sorted(samples) == [2.0 * number for number in range(20)]
