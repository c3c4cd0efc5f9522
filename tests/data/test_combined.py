"""Several loaders as one: what a batch has, how long an epoch is, and exact resume."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from hookline.data import CombinedLoader, make_loader
from hookline.data.position import find_position
from hookline.errors import ConfigError
from tests.data.loaders import (
    MAP_STYLE,
    Loop,
    Noisy,
    Numbers,
    NumbersWithState,
    Repeated,
    interrupted,
    straight,
)

CUTS = [[1], [2], [3], [6], [7], [8], [2, 4], [3, 7, 12]]
MODES = ["max_size", "min_size", "sequential", "interleave"]


def numbers(count, start=0):
    return make_loader(list(range(start, start + count)), batch_size=1)


def read(loader):
    """Return the samples of an epoch, by name."""
    return [{name: int(batch) for name, batch in each.items()} for each in loader]


def test_each_batch_has_one_of_every_loader_and_shorter_ones_begin_again():
    loader = CombinedLoader({"a": numbers(3), "b": numbers(2, 10)})
    assert len(loader) == 3
    assert read(loader) == [{"a": 0, "b": 10}, {"a": 1, "b": 11}, {"a": 2, "b": 10}]


def test_the_shortest_loader_ends_the_epoch():
    loader = CombinedLoader({"a": numbers(3), "b": numbers(2, 10)}, mode="min_size")
    assert len(loader) == 2
    assert read(loader) == [{"a": 0, "b": 10}, {"a": 1, "b": 11}]


def test_loaders_are_read_one_after_the_other():
    loader = CombinedLoader({"a": numbers(2), "b": numbers(1, 10)}, mode="sequential")
    assert read(loader) == [{"a": 0}, {"a": 1}, {"b": 10}]


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        (None, [{"a": 0}, {"b": 10}, {"a": 1}, {"b": 11}, {"a": 2}]),
        ({"a": 2}, [{"a": 0}, {"a": 1}, {"b": 10}, {"a": 2}, {"a": 3}, {"b": 11}, {"a": 4}]),
        ({"b": 2}, [{"a": 0}, {"b": 10}, {"b": 11}, {"a": 1}]),
    ],
)
def test_loaders_take_turns_until_one_has_ended(ratios, expected):
    loader = CombinedLoader({"a": numbers(5), "b": numbers(2, 10)}, "interleave", ratios)
    assert read(loader) == expected
    assert len(loader) == len(expected)


def test_a_shorter_loader_has_another_order_in_each_pass():
    short = make_loader(list(range(8)), batch_size=4, shuffle=True)
    loader = CombinedLoader({"long": numbers(8), "short": short})
    position = find_position(loader)
    orders = set()
    for epoch in range(2):
        position.set_epoch(epoch)
        batches = [batch["short"] for batch in position.begin_epoch()]
        for first, second in zip(batches[::2], batches[1::2], strict=True):
            order = torch.cat([first, second]).tolist()
            assert sorted(order) == list(range(8))
            orders.add(tuple(order))
    assert len(orders) == 8


@pytest.mark.parametrize("cuts", CUTS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_a_combined_loader_continues_exactly(mode, cuts):
    def make():
        long = DataLoader(Noisy(), 4, shuffle=True)
        middle = make_loader(Noisy(), 8, shuffle=True)
        short = MAP_STYLE["WeightedRandomSampler, generator"](0)
        loaders = {"long": long, "middle": middle, "short": short}
        return CombinedLoader(loaders, mode)

    assert interrupted(make, cuts) == straight(make)


@pytest.mark.parametrize("name", sorted(set(MAP_STYLE) - {"own sampler without length"}))
@pytest.mark.parametrize("cuts", [[3], [9], [2, 12]], ids=str)
def test_loaders_of_every_kind_continue_exactly_when_they_are_read_to_the_end(name, cuts):
    def make():
        return CombinedLoader(
            {"one": MAP_STYLE[name](0), "list": list(Repeated())}, mode="sequential"
        )

    assert interrupted(make, cuts) == straight(make)


def test_workers_continue_exactly():
    def make():
        loaders = {"a": MAP_STYLE["shuffle"](2), "b": make_loader(Noisy(), 8, num_workers=2)}
        return CombinedLoader(loaders)

    assert interrupted(make, [3, 6]) == straight(make)


def test_other_loaders_are_refused_inside_an_epoch():
    loop = Loop(CombinedLoader({"a": make_loader(Noisy(), 4), "b": make_loader(Noisy(), 8)}))
    loop.run(2)
    other = Loop(CombinedLoader({"a": make_loader(Noisy(), 4), "b": make_loader(Noisy(), 4)}))
    other.resume(loop.save())
    with pytest.raises(ConfigError) as caught:
        other.run(1)
    assert caught.value.parameter == "lengths"


def test_a_loader_with_its_own_position_must_be_read_to_the_end():
    own = MAP_STYLE["own sampler with state_dict"](0)
    with pytest.raises(ConfigError) as caught:
        find_position(CombinedLoader({"own": own, "short": numbers(2)}, "min_size"))
    assert caught.value.component == "train_loader['own']"


def test_what_is_announced_names_the_loader():
    loader = CombinedLoader({"stream": Sized(Numbers(), 4), "list": list(Repeated())}, "sequential")
    assert find_position(loader).announcement.startswith("stream: ")


class Sized(DataLoader):
    """A DataLoader of a stream, with a length."""

    def __len__(self):
        return 7


@pytest.mark.parametrize(
    ("options", "parameter"),
    [
        ({"loaders": {}}, "loaders"),
        ({"loaders": [[1, 2], [3]]}, "loaders"),
        ({"loaders": {"a": []}}, "loaders"),
        ({"loaders": {"a": DataLoader(NumbersWithState(), 4)}}, "loaders"),
        ({"mode": "zip"}, "mode"),
        ({"ratios": {"a": 1}}, "ratios"),
        ({"mode": "interleave", "ratios": {"b": 1}}, "ratios"),
        ({"mode": "interleave", "ratios": {"a": 0}}, "ratios"),
    ],
)
def test_options_that_do_not_fit_are_errors(options, parameter):
    with pytest.raises(ConfigError) as caught:
        CombinedLoader(**{"loaders": {"a": [1, 2]}, **options})
    assert caught.value.parameter == parameter


def test_a_loader_with_fewer_batches_than_its_length_is_an_error():
    class Short(list):
        def __len__(self):
            return 3

    with pytest.raises(ConfigError, match="1 batches"):
        list(CombinedLoader({"a": Short([1])}))
