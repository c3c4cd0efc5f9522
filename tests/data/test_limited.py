from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from hookline.data import make_loader
from hookline.data.limited import LimitedLoader, in_dataset_order, limit_batches
from hookline.data.position import find_position
from hookline.errors import ConfigError
from tests.data.loaders import MAP_STYLE, STREAMS, Noisy, interrupted, straight

OWN_STATE = "own sampler with state_dict"


@pytest.mark.parametrize("cuts", [[1], [3], [4], [2, 3, 7]], ids=str)
@pytest.mark.parametrize("name", [*sorted(set(MAP_STYLE) - {OWN_STATE}), "IterableDataset"])
def test_a_limited_loader_continues_exactly(name, cuts):
    def make():
        return LimitedLoader({**MAP_STYLE, **STREAMS}[name](0), 3)

    expected = straight(make)
    assert len(expected) == 9  # three epochs
    assert interrupted(make, cuts) == expected


def test_a_limited_loader_with_workers_continues_exactly():
    def make():
        return LimitedLoader(MAP_STYLE["WeightedRandomSampler, generator"](2), 3)

    assert interrupted(make, [2, 4]) == straight(make)


@pytest.mark.parametrize("name", [OWN_STATE, "IterableDataset with state_dict"])
def test_a_loader_with_its_own_position_is_refused(name):
    loader = {**MAP_STYLE, **STREAMS}[name](0)
    with pytest.raises(ConfigError) as caught:
        find_position(limit_batches(loader, 3))
    assert caught.value.component == "train_loader"


def test_a_loader_with_no_more_batches_is_not_changed():
    loader = make_loader(list(range(6)), batch_size=2)
    assert limit_batches(loader, 3) is loader
    assert limit_batches(loader, None) is loader
    assert limit_batches(None, 3) is None
    assert len(limit_batches(loader, 2)) == 2
    assert len(list(limit_batches(loader, 2))) == 2


@pytest.mark.parametrize(
    "loader",
    [
        make_loader(torch.arange(6), batch_size=2, shuffle=True),
        DataLoader(torch.arange(6), batch_size=2, shuffle=True, drop_last=True),
    ],
    ids=["make_loader", "DataLoader"],
)
def test_a_shuffled_loader_gets_the_order_of_its_dataset(loader):
    assert torch.cat(list(in_dataset_order(loader))).tolist() == list(range(6))


def test_a_loader_without_a_known_order_is_not_changed():
    batches = [Noisy()]
    assert in_dataset_order(batches) is batches


@pytest.mark.parametrize(("max_batches", "length"), [(2, 2), (3, 3), (5, 3)])
def test_a_limited_loader_is_no_longer_than_its_loader(max_batches, length):
    assert len(LimitedLoader(make_loader(Noisy(), 1, seed=0), max_batches)) <= max_batches
    assert len(LimitedLoader([1, 2, 3], max_batches)) == length
