from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hookline.data.sampler import EpochSampler

lengths = st.integers(1, 200)
batch_sizes = st.integers(1, 20)
world_sizes = st.integers(1, 5)
orders = st.sampled_from(
    [
        {"shuffle": False},
        {"shuffle": True, "shuffle_method": "randperm"},
        {"shuffle": True, "shuffle_method": "feistel"},
    ]
)


def ranks(world_size: int, **options: object) -> list[EpochSampler]:
    return [EpochSampler(rank=rank, world_size=world_size, **options) for rank in range(world_size)]


def run(
    samplers: list[EpochSampler], epoch: int, start: int, batches: int | None = None
) -> list[int]:
    """The samples that all ranks consume together, in so many steps or to the end."""
    seen = []
    for sampler in samplers:
        steps = [batch.tolist() for batch in sampler.batches(epoch, start)]
        seen += [index for step in steps[:batches] for index in step]
    return seen


@given(lengths, batch_sizes, world_sizes, orders)
def test_each_sample_comes_exactly_once_over_all_ranks(length, batch_size, world_size, order):
    samplers = ranks(world_size, length=length, batch_size=batch_size, **order)
    seen = run(samplers, 0, 0)
    if length >= world_size:
        assert sorted(seen) == list(range(length))
    else:  # every rank needs a batch, or the others would wait forever
        assert set(seen) == set(range(length))
        assert len(seen) == world_size


@given(lengths, batch_sizes, world_sizes, st.booleans(), st.integers(0, 200))
def test_the_positions_of_a_batch_are_its_samples_in_the_order_of_the_data(
    length, batch_size, world_size, drop_last, start
):
    start = min(start, length)
    for sampler in ranks(world_size, length=length, batch_size=batch_size, drop_last=drop_last):
        positions = [list(own) for own in sampler.positions(start)]
        assert positions == [batch.tolist() for batch in sampler.batches(0, start)]


@given(lengths, batch_sizes, world_sizes, st.booleans(), st.integers(0, 200))
def test_every_rank_gets_the_announced_number_of_batches_and_none_is_empty(
    length, batch_size, world_size, drop_last, start
):
    start = min(start, length)
    for sampler in ranks(world_size, length=length, batch_size=batch_size, drop_last=drop_last):
        sizes = [len(batch) for batch in sampler.batches(0, start)]
        assert len(sizes) == sampler.count(start)
        assert all(sizes)
        assert all(size == batch_size for size in sizes[:-1])
        assert not drop_last or all(size == batch_size for size in sizes)


@given(
    lengths,
    batch_sizes,
    batch_sizes,
    world_sizes,
    world_sizes,
    st.integers(0, 50),
    st.integers(0, 3),
    orders,
)
def test_the_rest_of_an_epoch_is_what_was_not_consumed_whatever_the_batch_size_and_number_of_ranks(
    length, batch_before, batch_after, ranks_before, ranks_after, steps, epoch, order
):
    before = ranks(ranks_before, length=length, batch_size=batch_before, seed=7, **order)
    after = ranks(ranks_after, length=length, batch_size=batch_after, seed=7, **order)
    position = before[0].after(0, steps)
    consumed = set(run(before, epoch, 0, steps))
    rest = run(after, epoch, position)
    assert consumed.isdisjoint(rest)
    assert consumed | set(rest) == set(range(length))
    if position == length or length - position >= ranks_after:
        assert len(rest) == len(set(rest))


@given(lengths, batch_sizes, world_sizes, st.booleans(), st.integers(0, 50), st.integers(0, 50))
def test_positions_add_up(length, batch_size, world_size, drop_last, first, second):
    sampler = EpochSampler(length, batch_size, drop_last=drop_last, world_size=world_size)
    position = sampler.after(0, first)
    assert sampler.after(position, second) == sampler.after(0, first + second)
    assert sampler.count(position) == max(0, sampler.count() - first)


@given(lengths, batch_sizes, st.integers(0, 50), orders)
def test_starting_in_the_middle_gives_the_same_batches_as_going_there(
    length, batch_size, steps, order
):
    sampler = EpochSampler(length, batch_size, seed=3, **order)
    all_batches = [batch.tolist() for batch in sampler.batches(2)]
    assert [batch.tolist() for batch in sampler.batches(2, sampler.after(0, steps))] == all_batches[
        steps:
    ]


@pytest.mark.parametrize("method", ["randperm", "feistel"])
def test_the_order_depends_on_seed_and_epoch_alone(method):
    def order(seed, epoch, **options):
        sampler = EpochSampler(100, shuffle=True, seed=seed, shuffle_method=method, **options)
        return tuple(torch.cat([*sampler.batches(epoch)]).tolist())

    orders = {(seed, epoch): order(seed, epoch) for seed in (0, 1) for epoch in (0, 1)}
    assert len(set(orders.values())) == 4
    torch.manual_seed(99)
    assert order(1, 1, batch_size=7) == orders[1, 1]


@pytest.mark.parametrize("method", ["randperm", "feistel"])
def test_the_order_leaves_the_global_random_numbers_alone(method):
    before = torch.get_rng_state()
    list(EpochSampler(100, shuffle=True, shuffle_method=method).batches(0))
    assert torch.equal(before, torch.get_rng_state())


def test_a_computed_order_is_the_default_where_a_drawn_one_would_be_large():
    assert EpochSampler(2**24, shuffle=True).find_method() == "randperm"
    assert EpochSampler(2**24 + 1, shuffle=True).find_method() == "feistel"
    assert EpochSampler(2**24 + 1, shuffle_method="randperm").find_method() == "randperm"
    assert EpochSampler(10, shuffle_method="feistel").find_method() == "feistel"


@pytest.mark.parametrize("shuffle", [False, True])
def test_an_order_longer_than_the_memory_begins_anywhere(shuffle):
    length = 10**15  # drawn or listed, it would take 8 PB
    samplers = ranks(3, length=length, batch_size=4, shuffle=shuffle)
    for start in (0, 12 * 10**9, length - 20):
        batches = [next(sampler.batches(5, start)).tolist() for sampler in samplers]
        seen = {index for batch in batches for index in batch}
        assert len(seen) == 12
        assert all(0 <= index < length for index in seen)
        assert shuffle != (seen == set(range(start, start + 12)))


@given(st.integers(1, 60_000), st.integers(1, 40_000), st.integers(1, 3), st.booleans())
@settings(max_examples=20)
def test_chunks_of_the_order_do_not_show_in_the_batches(length, batch_size, world_size, shuffle):
    options = {"length": length, "shuffle": shuffle, "shuffle_method": "feistel"}
    (whole,) = EpochSampler(batch_size=length, **options).batches(1)
    for rank in range(min(world_size, length)):
        sampler = EpochSampler(batch_size=batch_size, rank=rank, world_size=world_size, **options)
        samples = torch.cat([*sampler.batches(1)])
        if length >= world_size:
            assert torch.equal(samples, whole[rank::world_size])


def test_without_shuffling_the_order_is_that_of_the_data():
    assert [batch.tolist() for batch in EpochSampler(5, 2).batches(3)] == [[0, 1], [2, 3], [4]]


def test_dropping_the_last_batch_leaves_out_less_than_a_batch():
    sampler = EpochSampler(11, 4, drop_last=True)
    assert [batch.tolist() for batch in sampler.batches(0)] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert sampler.after(0, 99) == 8


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_rest_smaller_than_the_number_of_ranks_joins_the_batch_before_it(rank):
    sampler = EpochSampler(8, 2, rank=rank, world_size=3)  # 6 and a rest of 2
    assert sampler.count() == 1
    assert next(sampler.batches(0)).tolist() == list(range(rank, 8, 3))


@given(lengths, batch_sizes, world_sizes)
def test_shares_and_weight_of_the_last_batch_make_every_sample_count_the_same(
    length, batch_size, world_size
):
    samplers = ranks(world_size, length=length, batch_size=batch_size)
    sizes = [len([*sampler.batches(0)][-1]) for sampler in samplers]
    assert len({sampler.last_weight() for sampler in samplers}) == 1
    if length >= world_size:
        assert samplers[0].last_weight() == pytest.approx(sum(sizes) / (batch_size * world_size))
        assert [sampler.last_share() for sampler in samplers] == pytest.approx(
            [size * world_size / sum(sizes) for size in sizes]
        )
