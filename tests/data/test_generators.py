from __future__ import annotations

import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import RandomSampler

from hookline.checkpoint import check_plain
from hookline.data.generators import (
    Isolated,
    capture_generators,
    find_generators,
    restore_generators,
)

MAKERS = {
    "torch": lambda: torch.Generator().manual_seed(1),
    "python": lambda: random.Random(1),
    "numpy": lambda: np.random.default_rng(1),
    "numpy MT19937": lambda: np.random.Generator(np.random.MT19937(1)),
    "numpy legacy": lambda: np.random.RandomState(1),
}


def draw(generator: object) -> float:
    """Return a number of any generator; an odd number of normal ones leaves one in its cache."""
    if isinstance(generator, torch.Generator):
        return float(torch.randn((), generator=generator))
    if isinstance(generator, random.Random):
        return generator.gauss(0.0, 1.0)
    return float(generator.standard_normal())


@pytest.mark.parametrize("kind", MAKERS)
def test_a_generator_continues_where_its_state_was_captured(kind: str) -> None:
    loader = SimpleNamespace(generator=MAKERS[kind]())
    draw(loader.generator)
    states = capture_generators(loader)
    check_plain(states)
    expected = [draw(loader.generator) for _ in range(5)]
    other = SimpleNamespace(generator=MAKERS[kind]())
    restore_generators(other, states)
    assert [draw(other.generator) for _ in range(5)] == expected


def test_a_state_of_an_unknown_name_is_ignored() -> None:
    loader = SimpleNamespace(generator=MAKERS["torch"]())
    restore_generators(loader, {"sampler.generator": torch.zeros(1)})
    assert draw(loader.generator) == draw(MAKERS["torch"]())


def test_generators_are_found_in_samplers_of_samplers_and_once_each() -> None:
    shared, own = torch.Generator(), random.Random(0)
    inner = RandomSampler(range(3), generator=shared)
    outer = SimpleNamespace(sampler=inner, rng=own, size=3)
    loader = SimpleNamespace(generator=shared, sampler=inner, batch_sampler=outer, dataset=own)
    assert find_generators(loader) == {"batch_sampler.rng": own, "generator": shared}


def test_a_sampler_that_contains_itself_is_no_endless_search() -> None:
    sampler = RandomSampler(range(3))
    sampler.parent = sampler
    assert find_generators(SimpleNamespace(sampler=sampler)) == {}


def test_isolated_items_do_not_depend_on_draws_between_them() -> None:
    def items():
        for _ in range(3):
            yield random.random(), np.random.rand(), torch.rand(()).item()

    def read(disturb: bool) -> list[tuple[float, ...]]:
        random.seed(1)
        np.random.seed(1)
        torch.manual_seed(1)
        values = []
        for item in Isolated(items()):
            values.append(item)
            if disturb:
                random.random(), np.random.rand(), torch.rand(())
        return values

    assert read(True) == read(False)
    assert len(set(read(False))) == 3


def test_isolated_items_leave_the_draws_of_the_run_alone() -> None:
    def items(count: int):
        for _ in range(count):
            yield torch.rand(())

    def outside(count: int) -> float:
        torch.manual_seed(1)
        for _ in Isolated(items(count)):
            pass
        return torch.rand(()).item()

    assert outside(2) == outside(5)
    assert list(Isolated(iter(()))) == []
