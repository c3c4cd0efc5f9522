"""Every loader continues exactly where it was interrupted, or a user knows before training."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader, Sampler, WeightedRandomSampler

from hookline.data import make_loader, share_loaders
from hookline.data.position import DataPosition, find_position
from hookline.errors import ConfigError
from hookline.rng import seed_everything
from tests.data import loaders
from tests.data.loaders import (
    LENGTH,
    MAP_STYLE,
    OTHERS,
    STREAMS,
    Loop,
    Noisy,
    Numbers,
    NumbersWithState,
    interrupted,
    straight,
)

# After the first batch, inside an epoch, at the end of one, in the second, and twice.
CUTS = [[1], [5], [7], [10], [2, 4], [7, 8, 13]]


@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize("name", MAP_STYLE)
def test_a_data_loader_continues_exactly(name, cuts):
    def make():
        return MAP_STYLE[name](0)

    assert interrupted(make, cuts) == straight(make)


@pytest.mark.parametrize("name", MAP_STYLE)
def test_a_data_loader_with_workers_continues_exactly(name):
    def make():
        return MAP_STYLE[name](2)

    assert interrupted(make, [3, 7]) == straight(make)


@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_continues_exactly(name, cuts):
    def make():
        return STREAMS[name](0)

    assert interrupted(make, cuts) == straight(make)


@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize("name", OTHERS)
def test_other_loaders_continue_exactly(name, cuts):
    assert interrupted(OTHERS[name], cuts) == straight(OTHERS[name])


# These draw between batches, which is isolated from the rest of the run.
LAZY = {"own sampler, shuffle buffer", "own sampler without length", "own batch sampler, buckets"}


@pytest.mark.parametrize("name", sorted(set(MAP_STYLE) - LAZY))
def test_in_one_process_the_numbers_are_those_of_a_plain_loop(name):
    loader = MAP_STYLE[name](0)
    loop = Loop(loader)
    seed_everything(1)
    for epoch in range(3):
        if hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        for batch in loader:
            loop._step(batch)
    assert loop.trace == straight(lambda: MAP_STYLE[name](0))


FAR = 10_000  # batches into an epoch
LONG = FAR + 20  # batches of one sample


class Counting(Sampler):
    """Indices in order, with a short state."""

    def __init__(self):
        self.position = 0

    def __iter__(self):
        while self.position < LONG:
            self.position += 1
            yield self.position - 1

    def state_dict(self):
        return {"position": self.position}

    def load_state_dict(self, state):
        self.position = state["position"]


WITH_POSITION = {
    "make_loader": lambda: make_loader(Noisy(), 1, shuffle=True),
    "shuffle": lambda: DataLoader(Noisy(), 1, shuffle=True),
    "generator": lambda: DataLoader(Noisy(), 1, shuffle=True, generator=loaders.seeded()),
    "weighted": lambda: DataLoader(
        Noisy(), 1, sampler=WeightedRandomSampler(torch.ones(LONG), LONG)
    ),
    "own sampler": lambda: DataLoader(Noisy(), 1, sampler=loaders.ShuffleBuffer()),
    "sampler with state_dict": lambda: DataLoader(Noisy(), 1, sampler=Counting()),
    "stream with state_dict": lambda: DataLoader(NumbersWithState(), 1),
}


def reads_of_first_batch(make, batches_done):
    """Return how many samples a resumed run reads for its first batch."""
    seed_everything(1)
    before = Loop(make())
    batches = before.data.open_epoch(before.loader, 0, 0)
    for _ in range(batches_done):
        next(batches)
    before.batches_done = batches_done
    after = Loop(make())
    after.resume(before.save())
    next(after.data.open_epoch(after.loader, after.epoch, after.batches_done))
    return after.loader.dataset.reads


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_POSITION)
def test_a_resume_reads_no_more_samples_far_into_an_epoch(name, monkeypatch):
    monkeypatch.setattr(loaders, "LENGTH", LONG)
    near = reads_of_first_batch(WITH_POSITION[name], 10)
    assert near <= 2  # a sample that is the first to draw is read twice
    assert reads_of_first_batch(WITH_POSITION[name], FAR) <= 1.1 * near


def test_another_batch_size_continues_with_the_samples_that_are_left():
    seed_everything(1)
    loop = Loop(DataLoader(Noisy(), 4, shuffle=True))
    loop.run(3)
    checkpoint = loop.save()
    seen = [number for row in loop.trace for number in row[:4]]
    loop = Loop(DataLoader(Noisy(), 8, shuffle=True))
    loop.resume(checkpoint)
    assert loop.batches_done == 2  # of 8, with 14 of 26 samples left
    for samples, _ in loop.data.open_epoch(loop.loader, 0, loop.batches_done):
        seen += samples.tolist()
    assert sorted(seen) == list(range(LENGTH))


def test_a_changed_batch_size_is_refused_if_the_sampler_makes_the_batches():
    loop = Loop(DataLoader(Noisy(), 4, shuffle=True))
    loop.run(3)
    other = Loop(MAP_STYLE["own batch sampler, buckets"](0))
    other.resume(loop.save())
    with pytest.raises(ConfigError) as caught:  # Not before: a hook may replace the loader.
        other.data.open_epoch(other.loader, 0, 3)
    assert caught.value.problems[0].parameter == "batch_size"


def test_a_checkpoint_with_a_computed_order_continues_in_that_order():
    ours = Loop(make_loader(Noisy(), 4, shuffle=True, seed=3))
    ours.run(4)
    checkpoint = ours.save()
    first = [number for row in ours.trace for number in row[:4]]
    loop = Loop(DataLoader(Noisy(), 4, shuffle=True))
    loop.resume(checkpoint)
    rest = [
        row for samples, _ in loop.data.open_epoch(loop.loader, 0, 4) for row in samples.tolist()
    ]
    assert sorted(first + rest) == list(range(LENGTH))


def test_the_position_of_other_ranks_is_refused_inside_an_epoch():
    loader = DataLoader(Noisy(), 4, shuffle=True)
    data = DataPosition()
    next(data.open_epoch(loader, 0, 0))
    with pytest.raises(ConfigError) as caught:
        data.divide(loader, data.state(loader, 1), 1, 2)
    assert caught.value.problems[0].component == "train_loader"
    assert data.divide(loader, data.state(loader, 0), 1, 2) is None
    ours = make_loader(Noisy(), 4)
    state = data.state(ours, 1)
    assert data.divide(ours, state, 1, 2) is state


def test_a_data_loader_of_one_rank_cannot_be_divided_inside_an_epoch():
    loader = DataLoader(Noisy(), 4, shuffle=True)
    one_rank = DataPosition()
    next(one_rank.open_epoch(loader, 0, 0))
    of_two_ranks = share_loaders(loader, rank=1, world_size=2, training=True)
    resumed = DataPosition()
    resumed.restore(of_two_ranks, one_rank.state(loader, 1), 0, 1)
    with pytest.raises(ConfigError) as caught:
        resumed.open_epoch(of_two_ranks, 0, 1)
    problem = caught.value.problems[0]
    assert problem.component == "train_loader"
    assert "make_loader" in problem.suggestion.advice
    at_the_end = one_rank.state(loader, 0)
    assert DataPosition().restore(of_two_ranks, at_the_end, 1, 0) == 0
    assert of_two_ranks.epoch == 1


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(Numbers(), 4),
        DataLoader(NumbersWithState(), 4, num_workers=1),
    ],
    ids=["stream", "state in workers"],
)
def test_a_loader_that_is_read_again_is_announced(loader):
    assert find_position(loader).announcement


def test_a_stream_with_state_in_this_process_is_not_announced():
    assert find_position(DataLoader(NumbersWithState(), 4)).announcement is None
    assert find_position(make_loader(NumbersWithState(), 4)).announcement is None


def test_a_shared_generator_continues_after_a_validation_inside_an_epoch():
    def trace(cut: int | None) -> list[list[int]]:
        generator = torch.Generator().manual_seed(3)
        loader = DataLoader(Noisy(), 4, shuffle=True, generator=generator)
        validation = DataLoader(Noisy(), 4, shuffle=True, generator=generator)
        loop = Loop(loader)
        seen = []
        for epoch in range(2):
            for number, (samples, _) in enumerate(loop.data.open_epoch(loader, epoch, 0), 1):
                seen.append(samples.tolist())
                if number == 3:
                    next(iter(validation))
                if epoch == 0 and number == cut:
                    return _continue(loop, seen, number)
        return seen

    def _continue(loop, seen, number):
        loop.batches_done = number
        checkpoint = loop.save()
        generator = torch.Generator().manual_seed(4)
        loop = Loop(DataLoader(Noisy(), 4, shuffle=True, generator=generator))
        loop.resume(checkpoint)
        for epoch in range(2):
            done = loop.batches_done if epoch == 0 else 0
            seen += [each.tolist() for each, _ in loop.data.open_epoch(loop.loader, epoch, done)]
        return seen

    assert trace(cut=5) == trace(cut=None)
