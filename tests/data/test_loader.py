from __future__ import annotations

import gc
import logging
import multiprocessing
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

from hookline.data import ResumableLoader, make_loader, make_resumable, share_loaders
from hookline.data.digits import Digits
from tests.problems import logged, raises_problem


class Traced(Dataset):
    """Samples that are their own number beside random numbers of all three kinds."""

    def __init__(self, length: int = 50) -> None:
        self.length = length
        self.started_by = -1

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor]:
        drawn = [
            random.random(),
            random.gauss(0, 1),
            np.random.rand(),
            np.random.normal(),
            torch.rand(()).item(),
            torch.randn(()).item(),
        ]
        return index, torch.tensor(drawn, dtype=torch.float64)


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        return iter(range(10) if info is None else range(info.id, 10, info.num_workers))


def ids(batches) -> list[int]:
    return [index for batch in batches for index in batch[0].tolist()]


def rows(batches) -> dict[int, list[float]]:
    return {
        index: row
        for numbers, drawn in batches
        for index, row in zip(numbers.tolist(), drawn.tolist(), strict=True)
    }


def rng_state() -> tuple[object, ...]:
    numpy = np.random.get_state()
    return random.getstate(), torch.get_rng_state().tolist(), numpy[1].tolist(), numpy[2:]


def take(loader, count: int) -> list:
    iterator = iter(loader)
    return [next(iterator) for _ in range(count)]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dataset", [Traced(50), TensorDataset(torch.arange(50))])
def test_each_sample_comes_exactly_once_across_a_resume_in_mid_epoch(workers, dataset):
    first = make_loader(dataset, 8, shuffle=True, num_workers=workers, seed=4)
    first.set_epoch(3)
    seen = ids(take(first, 3))
    state = first.state_dict(batches_done=3)

    second = make_loader(dataset, 8, shuffle=True, num_workers=workers, seed=4)
    second.load_state_dict(state)
    assert second.epoch == 3
    assert second.batches_done == 3
    assert sorted(seen + ids(second)) == list(range(50))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_resumed_epoch_equals_one_that_went_through(workers):
    through = make_loader(Traced(), 8, shuffle=True)
    through.set_epoch(1)
    resumed = make_loader(Traced(), 8, shuffle=True, num_workers=workers)
    resumed.load_state_dict(through.state_dict(batches_done=2))
    expected = list(through)[2:]
    assert all(
        torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])
        for a, b in zip(resumed, expected, strict=True)
    )
    resumed.set_epoch(2)
    through.set_epoch(2)
    assert rows(resumed) == rows(through)


def test_a_run_may_be_interrupted_again_and_again():
    seen, state = [], None
    for batches, batch_size in [(1, 7), (2, 4), (3, 5), (99, 3)]:
        loader = make_loader(Traced(), batch_size, shuffle=True)
        if state:
            loader.load_state_dict(state)
        part = list(loader)[:batches]
        seen += ids(part)
        state = loader.state_dict(loader.batches_done + len(part))
    assert sorted(seen) == list(range(50))
    assert state["samples"] == 50


def test_the_next_epoch_can_begin_after_a_resume():
    loader = make_loader(Traced(), 5)
    loader.load_state_dict(make_loader(Traced(), 8).state_dict(2))
    assert loader.batches_done == 3  # 16 samples in batches of 5, the rest in 7 batches
    assert loader.state_dict(10)["samples"] == 50
    assert loader.state_dict(0)["samples"] == 0


def test_what_workers_have_read_ahead_does_not_count_as_consumed():
    loader = make_loader(Traced(), 5, num_workers=2, prefetch_factor=4)
    iterator = iter(loader)
    next(iterator)
    assert loader.state_dict(batches_done=1)["samples"] == 5


def test_the_state_is_plain_values():
    state = make_loader(Traced(), 8).state_dict(2)
    assert state == {
        "epoch": 0,
        "samples": 16,
        "seed": 0,
        "shuffle": False,
        "shuffle_method": "randperm",
        "length": 50,
    }


def test_two_ranks_share_an_epoch_and_one_rank_can_finish_it():
    both = [make_loader(Traced(51), 4, shuffle=True, rank=rank, world_size=2) for rank in (0, 1)]
    assert len(both[0]) == len(both[1]) == 7
    assert sorted(ids(both[0]) + ids(both[1])) == list(range(51))
    seen = ids(take(both[0], 3)) + ids(take(both[1], 3))
    assert both[0].state_dict(3) == both[1].state_dict(3)
    alone = make_loader(Traced(51), 4, shuffle=True)
    alone.load_state_dict(both[0].state_dict(3))
    assert sorted(seen + ids(alone)) == list(range(51))
    assert rows(make_loader(Traced(51), 4, shuffle=True)) == rows(both[0]) | rows(both[1])


def test_random_numbers_do_not_depend_on_the_number_of_workers_or_the_batch_size():
    expected = rows(make_loader(Traced(), 8, shuffle=True, seed=1))
    assert len({tuple(row) for row in expected.values()}) == 50
    assert rows(make_loader(Traced(), 8, shuffle=True, seed=1, num_workers=1)) == expected
    assert rows(make_loader(Traced(), 8, shuffle=True, seed=1, num_workers=2)) == expected
    assert rows(make_loader(Traced(), 5, seed=1)) == expected


def test_random_numbers_differ_between_epochs_and_seeds():
    loader = make_loader(Traced(), 8)
    first = rows(loader)
    loader.set_epoch(1)
    assert not {tuple(row) for row in first.values()} & {
        tuple(row) for row in rows(loader).values()
    }
    other = rows(make_loader(Traced(), 8, seed=1))
    assert not {tuple(row) for row in first.values()} & {tuple(row) for row in other.values()}


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dataset", [Traced(20), Digits("val")])
def test_loading_leaves_the_global_random_numbers_alone(workers, dataset):
    np.random.normal()
    before = rng_state()
    list(make_loader(dataset, 8, shuffle=True, num_workers=workers))
    assert rng_state() == before


def test_the_middle_of_a_million_samples_is_reached_without_reading_those_before():
    class Counted(Traced):
        read = 0

        def __getitem__(self, index):
            Counted.read += 1
            return super().__getitem__(index)

    loader = make_loader(Counted(1_000_000), 10, shuffle=True)
    loader.set_epoch(7)
    state = loader.state_dict(60_000)
    loader.load_state_dict(state)
    next(iter(loader))
    assert Counted.read == 11  # the first sample again, because it draws random numbers
    assert loader.batches_done == 60_000


def test_iterating_does_not_move_the_loader():
    loader = make_loader(Traced(), 8, shuffle=True)
    running = iter(loader)
    first = next(running)
    assert torch.equal(next(iter(loader))[0], first[0])
    assert ids([first, *running]) == ids(loader)


def test_a_whole_epoch_can_be_had_where_it_was_resumed():
    loader = make_loader(Traced(), 8, shuffle=True)
    whole = ids(loader)
    loader.load_state_dict(loader.state_dict(4))
    assert ids(loader) == whole[32:]
    assert ids(loader.whole_epoch()) == whole
    loader.set_epoch(0)
    assert ids(loader) == whole


def test_the_length_is_that_of_a_whole_epoch():
    loader = make_loader(Traced(), 8)
    loader.load_state_dict(loader.state_dict(4))
    assert len(loader) == 7
    assert (len(list(loader)), loader.batches_done) == (3, 4)
    assert len(make_loader(Traced(), 8, drop_last=True)) == 6


def test_a_state_brings_its_seed_along():
    state = make_loader(Traced(), 8, shuffle=True, seed=5).state_dict(2)
    loader = make_loader(Traced(), 8, shuffle=True, seed=6)
    loader.load_state_dict(state)
    assert rows(loader.whole_epoch()) == rows(make_loader(Traced(), 8, shuffle=True, seed=5))


def test_a_position_in_other_data_is_rejected_but_a_fresh_epoch_is_not():
    state = make_loader(Traced(50), 8).state_dict(2)
    with raises_problem(component="train_loader", parameter="length"):
        make_loader(Traced(60), 8).load_state_dict(state)
    with raises_problem(component="train_loader", parameter="shuffle"):
        make_loader(Traced(50), 8, shuffle=True).load_state_dict(state)
    make_loader(Traced(60), 8, shuffle=True).load_state_dict({**state, "samples": 0})


def shuffled(length: int = 50, method: str = "auto") -> ResumableLoader:
    return make_loader(Traced(length), 8, shuffle=True, shuffle_method=method)


def test_a_state_without_a_shuffle_method_continues_the_order_of_release_0_1():
    state = shuffled(method="randperm").state_dict(2)
    del state["shuffle_method"]
    loader = shuffled()
    loader.load_state_dict(state)
    assert ids(loader) == ids(shuffled(method="randperm"))[16:]
    large = make_loader(range(2**24 + 1), 8, shuffle=True)
    assert large.state_dict(2)["shuffle_method"] == "feistel"
    large.load_state_dict({**state, "length": 2**24 + 1})
    assert large.state_dict(2)["shuffle_method"] == "randperm"


def test_a_state_brings_its_shuffle_method_along():
    before = shuffled(method="feistel")
    loader = shuffled()
    loader.load_state_dict(before.state_dict(2))
    assert ids(loader) == ids(before)[16:] != ids(shuffled())[16:]
    loader.set_epoch(1)
    before.set_epoch(1)
    assert ids(loader) == ids(before)


def test_the_shuffle_method_can_change_between_epochs_only():
    state = shuffled(method="randperm").state_dict(2)
    with raises_problem(component="train_loader", parameter="shuffle_method"):
        shuffled(method="feistel").load_state_dict(state)
    loader = shuffled(method="feistel")
    loader.load_state_dict({**state, "samples": 0})
    assert ids(loader) == ids(shuffled(method="feistel"))


def test_a_shuffle_method_of_a_later_release_is_rejected():
    state = {**shuffled().state_dict(0), "shuffle_method": "later"}
    with raises_problem(component="train_loader", parameter="shuffle_method", value="later"):
        shuffled().load_state_dict(state)


def test_data_of_another_length_choose_their_shuffle_method_again():
    state = shuffled(50, "feistel").state_dict(0)
    loader = shuffled(60)
    loader.load_state_dict(state)
    assert ids(loader) == ids(shuffled(60))


def test_abandoning_an_iterator_ends_its_workers():
    iterator = iter(make_loader(Traced(), 2, num_workers=2))
    next(iterator)
    assert len(multiprocessing.active_children()) >= 2
    before = set(multiprocessing.active_children())
    del iterator
    gc.collect()
    assert not before & set(multiprocessing.active_children())


def test_persistent_workers_give_the_same_and_outlive_an_abandoned_epoch():
    loader = make_loader(Traced(), 4, shuffle=True, num_workers=2, persistent_workers=True)
    expected = make_loader(Traced(), 4, shuffle=True)
    for epoch in range(3):
        loader.set_epoch(epoch)
        expected.set_epoch(epoch)
        take(loader, 2)
        assert rows(loader) == rows(expected)


def test_persistent_workers_refuse_to_serve_two_iterators():
    loader = make_loader(Traced(), 4, num_workers=1, persistent_workers=True)
    first = iter(loader)
    next(first)
    next(iter(loader))
    with pytest.raises(RuntimeError, match="persistent_workers"):
        next(first)


def test_code_in_a_worker_sees_the_users_own_data_set():
    def start(worker_id):
        get_worker_info().dataset.started_by = worker_id

    def collate(samples):
        return get_worker_info().dataset.started_by, type(get_worker_info().dataset).__name__

    batches = list(
        make_loader(Traced(4), 2, num_workers=2, worker_init_fn=start, collate_fn=collate)
    )
    assert batches == [(0, "Traced"), (1, "Traced")]


@pytest.mark.slow
def test_workers_may_be_spawned():
    options = {"batch_size": 64, "shuffle": True, "seed": 2}
    spawned = make_loader(
        Digits("train", augment=True), num_workers=1, multiprocessing_context="spawn", **options
    )
    expected = make_loader(Digits("train", augment=True), **options)
    for batch, other in zip(spawned, expected, strict=True):
        assert torch.equal(batch[0], other[0])


def test_an_empty_data_set_is_rejected():
    with raises_problem(component="Traced"):
        make_loader(Traced(0))


def test_a_stream_is_loaded_in_its_own_order():
    loader = make_loader(Stream(), 4)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    with pytest.raises(TypeError):
        len(loader)
    with raises_problem(component="loader", parameter="shuffle", value=True):
        make_loader(Stream(), 4, shuffle=True)


def test_the_workers_of_a_stream_leave_the_global_random_numbers_alone():
    before = rng_state()
    loader = make_loader(Stream(), 4, num_workers=2)
    assert sorted(number for batch in loader for number in batch.tolist()) == list(range(10))
    assert rng_state() == before


def test_a_plain_loader_of_torch_can_be_made_resumable():
    data = Traced()
    loader = make_resumable(DataLoader(data, batch_size=6, shuffle=True, drop_last=True), seed=3)
    assert isinstance(loader, ResumableLoader)
    assert loader.sampler == replace(
        make_loader(data, 6, shuffle=True, seed=3).sampler, drop_last=True
    )
    assert ids(make_resumable(DataLoader(data, batch_size=6))) == list(range(50))
    assert next(iter(make_resumable(DataLoader(data, batch_size=6, collate_fn=len)))) == 6


def test_a_loader_with_a_custom_order_is_not_made_resumable():
    assert (
        make_resumable(DataLoader(Traced(), sampler=WeightedRandomSampler([1.0] * 50, 50))) is None
    )
    assert make_resumable(DataLoader(Traced(), batch_size=None)) is None
    assert make_resumable(DataLoader(Traced(), batch_sampler=[[0, 1], [2]])) is None
    assert make_resumable(DataLoader(Stream())) is None


# Several processes


def shares(make, count: int = 2, **options) -> list[list[int]]:
    return [ids(share_loaders(make(rank), rank, count, **options)) for rank in range(count)]


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_distributed_sampler_in_evaluation_gives_no_sample_twice(shuffle):
    def make(rank):
        data = Traced(13)
        return {
            "clean": DataLoader(
                data,
                batch_size=3,
                sampler=DistributedSampler(data, num_replicas=4, rank=rank, shuffle=shuffle),
            )
        }

    loaders = [share_loaders(make(rank), rank, 4)["clean"] for rank in range(4)]
    assert sorted(index for loader in loaders for index in ids(loader)) == list(range(13))
    assert ids(loaders[0])[:2] == [
        0,
        4,
    ]  # in the order of the data, for a data set that judges predictions itself


def test_a_distributed_sampler_in_training_is_left_as_it_is():
    data = Traced(13)
    loader = DataLoader(
        data, batch_size=3, sampler=DistributedSampler(data, num_replicas=2, rank=0)
    )
    assert share_loaders(loader, 0, 2, training=True) is loader


def test_the_order_of_a_divided_loader_follows_the_seed_of_its_generator():
    def make(seed):
        return lambda rank: DataLoader(
            Traced(), batch_size=6, shuffle=True, generator=torch.Generator().manual_seed(seed)
        )

    first, second = shares(make(5))
    assert sorted(first + second) == list(range(50))
    assert (first, second) != tuple(shares(make(6)))
    assert first == ids(make_loader(Traced(), 6, shuffle=True, seed=5, rank=0, world_size=2))


def undividable():
    return {
        "StreamLoader": make_loader(Stream(), 4),
        "DataLoader": DataLoader(
            Traced(), batch_sampler=BatchSampler(range(50), 5, drop_last=False)
        ),
        "list": [1, 2, 3],
    }


@pytest.mark.parametrize("kind", ["StreamLoader", "DataLoader", "list"])
def test_a_training_loader_that_cannot_be_divided_is_reported_once(caplog, kind):
    loader = undividable()[kind]
    with caplog.at_level(logging.WARNING, "hookline"):
        for rank in range(3):
            assert share_loaders(loader, rank, 3, training=True) is loader
    assert len(logged(caplog, "train_loader", kind)) == len(caplog.records) == 1


def test_a_loader_that_is_divided_or_only_evaluated_is_not_reported(caplog):
    data = Traced(13)
    dealt = BatchSampler(DistributedSampler(data, num_replicas=2, rank=0), 3, drop_last=False)
    with caplog.at_level(logging.WARNING, "hookline"):
        share_loaders(DataLoader(data, batch_sampler=dealt), 0, 2, training=True)
        share_loaders(DataLoader(data, batch_size=3), 0, 2, training=True)
        for loader in undividable().values():
            share_loaders(loader, 0, 2)
            share_loaders(loader, 0, 1, training=True)
    assert not caplog.records


class Ragged(torch.utils.data.Dataset):
    """Samples of different lengths, with a function that makes batches of them."""

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return list(range(index + 1))

    def collate_fn(self, samples):
        return [len(sample) for sample in samples]


def test_a_loader_uses_the_collate_fn_of_its_dataset_unless_it_is_given_one():
    data = Ragged()
    assert list(make_loader(data, batch_size=2)) == [[1, 2], [3, 4]]
    subset = torch.utils.data.Subset(data, [3, 0])
    assert list(make_loader(subset, batch_size=2)) == [[4, 1]]
    assert list(make_loader(data, batch_size=4, collate_fn=len)) == [4]
