from __future__ import annotations

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from hookline.data import make_loader
from hookline.data.replacement import make_resumable, share_loaders

DATA = list(range(10))


def collate(samples):
    return sum(samples)


class OwnLoader(DataLoader):
    """A loader with a class of its own."""


def order(loader) -> list[int]:
    return [int(sample) for batch in loader for sample in batch]


def test_a_sequential_loader_keeps_its_batches_and_options() -> None:
    loader = DataLoader(DATA, batch_size=4, drop_last=True, collate_fn=collate)
    replaced = make_resumable(loader)
    assert replaced is not None
    assert list(replaced) == list(loader) == [6, 22]


def test_a_shuffled_loader_yields_each_sample_once_in_the_order_of_a_seed() -> None:
    first, same, other = (
        make_resumable(DataLoader(DATA, batch_size=4, shuffle=True), seed) for seed in (1, 1, 2)
    )
    assert order(first) == order(same) != order(other)
    assert sorted(order(first)) == DATA
    assert order(first) != DATA


def test_the_generator_of_a_loader_gives_the_seed() -> None:
    def shuffled(seed: int):
        generator = torch.Generator().manual_seed(seed)
        return make_resumable(DataLoader(DATA, shuffle=True, generator=generator), seed=9)

    assert order(shuffled(1)) == order(shuffled(1)) != order(shuffled(2))


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(DATA, sampler=RandomSampler(DATA, replacement=True)),
        DataLoader(DATA, sampler=RandomSampler(DATA, num_samples=5)),
        DataLoader(DATA, sampler=SubsetRandomSampler([1, 2])),
        DataLoader(DATA, sampler=DistributedSampler(DATA, 2, 0)),
        DataLoader(DATA, batch_size=None),
        DataLoader(
            DATA, batch_sampler=type("Own", (BatchSampler,), {})(SequentialSampler(DATA), 2, False)
        ),
        DataLoader(DATA, num_workers=1, in_order=False),
        OwnLoader(DATA),
    ],
    ids=["replaced", "few", "subset", "divided", "unbatched", "batches", "any order", "own class"],
)
def test_a_loader_with_another_order_is_not_replaced(loader: DataLoader) -> None:
    assert make_resumable(loader) is None


@pytest.mark.parametrize("make", [lambda: DataLoader(DATA, 2), lambda: make_loader(DATA, 2)])
def test_ranks_share_the_samples_of_a_loader(make) -> None:
    shares = [order(share_loaders(make(), rank, 2)) for rank in (0, 1)]
    assert sorted(shares[0] + shares[1]) == DATA
    assert len(shares[0]) == len(shares[1]) == 5


def test_loaders_by_name_are_shared_each() -> None:
    shared = share_loaders({"a": DataLoader(DATA), "b": DataLoader(DATA[:4])}, 0, 2)
    assert {name: len(order(loader)) for name, loader in shared.items()} == {"a": 5, "b": 2}


def test_nothing_is_shared_by_one_rank_or_a_small_dataset() -> None:
    loader = DataLoader(DATA)
    assert share_loaders(loader, 0, 1) is loader
    assert share_loaders(None, 0, 2) is None
    assert order(share_loaders(DataLoader([7]), 0, 2)) == [7]


def test_a_divided_loader_is_replaced_for_evaluation_only(caplog) -> None:
    loader = DataLoader(DATA[:5], sampler=DistributedSampler(DATA[:5], 2, 0))
    assert share_loaders(loader, 0, 2, training=True) is loader
    assert caplog.records == []
    shares = [order(share_loaders(loader, rank, 2)) for rank in (0, 1)]
    assert sorted(shares[0] + shares[1]) == DATA[:5]


@pytest.mark.parametrize(
    ("rank", "training", "warned"), [(0, True, True), (1, True, False), (0, False, False)]
)
def test_the_first_rank_warns_about_training_data_that_all_ranks_read(
    caplog, rank: int, training: bool, warned: bool
) -> None:
    batches = [[1], [2]]
    assert share_loaders(batches, rank, 2, training=training) is batches
    assert bool(caplog.records) is warned
