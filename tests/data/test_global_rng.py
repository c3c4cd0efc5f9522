from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hookline.data.global_rng import (
    NumpyGenerator,
    PythonGenerator,
    TorchGenerator,
    global_generators,
)

DRAWS = {
    PythonGenerator: [
        random.random,
        lambda: random.gauss(0, 1),
        lambda: random.shuffle([1, 2]),
        lambda: [random.getrandbits(32) for _ in range(624)],
    ],
    NumpyGenerator: [
        np.random.rand,
        np.random.normal,
        lambda: np.random.permutation(3),
        lambda: np.random.randint(0, 2**32, 624, dtype=np.uint32),
    ],
    TorchGenerator: [
        lambda: torch.rand(2),
        lambda: torch.randn(()),
        lambda: torch.randperm(3),
        lambda: torch.randint(0, 2**31, (624,)),
    ],
}
CASES = [(kind, draw) for kind, draws in DRAWS.items() for draw in draws]


def numbers() -> tuple[float, ...]:
    normal = float(np.random.normal())
    return random.random(), random.gauss(0, 1), normal, float(torch.rand(())), normal


@pytest.fixture(autouse=True)
def _leave_the_generators_alone():
    generators = global_generators()
    for generator in generators:
        generator.keep()
    yield
    for generator in generators:
        generator.restore()


@pytest.mark.parametrize(("kind", "draw"), CASES)
@pytest.mark.parametrize("pending", [0, 1], ids=["", "after half a pair of normal numbers"])
def test_every_draw_is_noticed_by_its_generator_alone(kind, draw, pending):
    for _ in range(pending):
        random.gauss(0, 1)
        np.random.normal()
    generators = global_generators()
    for generator in generators:
        generator.keep()
    assert not any(generator.has_changed() for generator in generators)
    draw()
    assert [type(each) for each in generators if each.has_changed()] == [kind]


@pytest.mark.parametrize(("kind", "draw"), CASES)
def test_a_watched_generator_notices_every_draw_of_its_kind_at_each_check(kind, draw):
    random.gauss(0, 1)  # the other half of a pair of normal numbers is pending
    np.random.normal()
    generators = global_generators()
    for generator in generators:
        generator.watch()
    for _ in range(3):
        assert not any(generator.has_changed() for generator in generators)
    draw()
    assert [type(each) for each in generators if each.has_changed()] == [kind]


def test_a_watched_generator_of_numpy_keeps_the_chosen_bit_generator():
    before = np.random.get_bit_generator()
    chosen = np.random.PCG64(1)
    np.random.set_bit_generator(chosen)
    try:
        generator = NumpyGenerator()
        generator.watch()
        assert not generator.has_changed()
        np.random.rand()
        assert generator.has_changed()
        assert np.random.get_bit_generator() is chosen
    finally:
        np.random.set_bit_generator(before)


@given(st.lists(st.sampled_from(CASES), max_size=5), st.lists(st.sampled_from(CASES), max_size=5))
def test_a_kept_state_is_restored_whatever_was_drawn_before_and_after(before, after):
    generators = global_generators()
    for _ in range(2):  # the second time, a part of the states is known already
        for _, draw in before:
            draw()
        for generator in generators:
            generator.keep()
        expected = numbers()
        for _, draw in after:
            draw()
        for generator in generators:
            generator.restore()
        assert numbers() == expected
        for generator in generators:
            generator.restore()


def test_a_run_that_draws_one_normal_number_between_two_batches_gets_each_once():
    generator = NumpyGenerator()
    np.random.seed(3)
    expected = np.random.normal(size=6).tolist()
    np.random.seed(3)
    drawn = []
    for _ in range(6):
        drawn.append(float(np.random.normal()))
        generator.keep()
        generator.seed(5)
        generator.restore()
    assert drawn == expected


def test_seeds_give_other_numbers_in_numpy_than_in_torch():
    for generator in global_generators():
        generator.seed(2**40 + 17)
    of_numpy = np.random.randint(0, 2**24, 8).tolist()
    of_torch = torch.randint(0, 2**24, (8,)).tolist()
    assert not set(of_numpy) & set(of_torch)


def test_another_generator_of_numpy_is_watched_as_well():
    before = np.random.get_bit_generator()
    np.random.set_bit_generator(np.random.PCG64(1))
    try:
        generator = NumpyGenerator()
        generator.keep()
        assert not generator.has_changed()
        first = np.random.rand()
        assert generator.has_changed()
        generator.restore()
        assert np.random.rand() == first
    finally:
        np.random.set_bit_generator(before)
