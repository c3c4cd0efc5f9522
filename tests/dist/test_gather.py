"""Combining results. tests/dist/test_world.py and test_training.py do it in several processes."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from hookline.data import make_loader
from hookline.data.replacement import share_loaders
from hookline.dist.gather import (
    batch_share,
    combine_results,
    gather_in_order,
    has_own_sync,
    is_sharded,
    mean_over_ranks,
    order_seed,
)
from hookline.errors import HooklineError

ONE = SimpleNamespace(size=1)
DIVIDED = SimpleNamespace(sampler=SimpleNamespace(world_size=2, __len__=None))


class Ranks:
    """Two ranks, of which the second one's messages are given."""

    size = 2

    def __init__(self, *other: object) -> None:
        self.other = other

    def sum(self, numbers: list[float]) -> list[float]:
        return [own + other for own, other in zip(numbers, self.other, strict=True)]

    def gather_text(self, text: str) -> list[str]:
        return [text, json.dumps(self.other)]


def test_a_loader_is_sharded_if_its_sampler_divides_the_data() -> None:
    loader = make_loader(list(range(8)), batch_size=2, shuffle=True, seed=5)
    assert not is_sharded(loader)
    assert order_seed(loader) is None
    shared = share_loaders(loader, 0, 2)
    assert is_sharded(shared)
    assert order_seed(shared) == 5
    sampler = DistributedSampler(range(8), 2, 0, shuffle=False, seed=3)
    assert is_sharded(DataLoader(range(8), sampler=sampler))
    assert order_seed(DataLoader(range(8), sampler=sampler)) is None
    assert not is_sharded([1, 2])


def test_only_the_last_batch_of_an_epoch_has_another_share() -> None:
    loader = SimpleNamespace(last_share=lambda: 0.5)
    runner = SimpleNamespace(inner_iter=2, epoch_length=4, train_loader=loader)
    assert batch_share(runner) == 1.0
    runner.inner_iter = 3
    assert batch_share(runner) == 0.5
    runner.train_loader = []
    assert batch_share(runner) == 1.0


def test_metrics_that_cover_all_ranks_are_known() -> None:
    assert has_own_sync(SimpleNamespace(over_all_processes=True))
    assert has_own_sync(SimpleNamespace(sync_on_compute=False))
    assert not has_own_sync(SimpleNamespace(over_all_processes=False))
    assert not has_own_sync(3)


def test_the_mean_of_ranks_is_weighted_by_samples() -> None:
    assert mean_over_ranks(ONE, "anything", 3) == "anything"
    assert float(mean_over_ranks(Ranks(1.0, 8.0), 2.0, 3)) == (2.0 * 3 + 8.0) / 4
    means = mean_over_ranks(Ranks(1.0, 0.0, 4.0), torch.tensor([[1.0, 2.0]]), 1)
    assert means.tolist() == [[0.5, 3.0]]
    assert float(mean_over_ranks(Ranks(2.0, 8.0), float("nan"), 0)) == 4.0
    named = mean_over_ranks(Ranks(1.0, 3.0), {"a": 1.0}, 1)
    assert {name: float(value) for name, value in named.items()} == {"a": 2.0}


class Shares(list):
    """A sampler of two ranks with a length."""

    world_size = 2


def test_results_of_a_function_are_combined_by_samples_or_taken_from_rank_0() -> None:
    assert combine_results(ONE, {"a": 1.0}, []) == {"a": 1.0}
    assert combine_results(Ranks(None, {"a": 9.0}), {"a": 1.0}, []) == {"a": 1.0}
    loader = SimpleNamespace(sampler=Shares([1, 2, 3]))
    assert combine_results(Ranks(1, {"a": 9.0}), {"a": 1.0}, loader) == {"a": 3.0}
    assert combine_results(Ranks(0, {"a": float("nan")}), {"a": 1.0}, loader) == {"a": 1.0}


def test_results_that_cannot_be_combined_are_an_error() -> None:
    with pytest.raises(HooklineError):
        combine_results(Ranks(None, {"b": 1.0}), {"a": 1.0}, [])
    unsized = SimpleNamespace(sampler=SimpleNamespace(world_size=2))
    with pytest.raises(HooklineError):
        combine_results(Ranks(None, {"a": 1.0}), {"a": 1.0}, unsized)


def test_one_rank_has_all_predictions() -> None:
    assert gather_in_order([[1, 2], [3]], None, ONE) == [1, 2, 3]
