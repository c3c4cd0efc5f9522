from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hookline.data.seeding import epoch_key, order_generator, preserved_rng, seed_sample


def draw() -> tuple[float, float, float, float]:
    return random.random(), random.gauss(0, 1), float(np.random.normal()), float(torch.rand(()))


def test_the_same_sample_draws_the_same_numbers():
    key = epoch_key(seed=1, epoch=2)
    with preserved_rng():
        seed_sample(key, 5)
        first = draw()
        seed_sample(key, 6)
        other = draw()
        seed_sample(key, 5)
        again = draw()
    assert first == again
    assert not set(first) & set(other)


def test_numpy_and_torch_do_not_draw_the_same_bits():
    with preserved_rng():
        seed_sample(epoch_key(0, 0), 0)
        of_numpy = np.random.randint(0, 2**24, 8).tolist()
        of_torch = torch.randint(0, 2**24, (8,)).tolist()
    assert not set(of_numpy) & set(of_torch)


@given(st.integers(-(2**70), 2**70), st.integers(0, 10**6))
def test_any_whole_number_can_be_a_seed(seed, epoch):
    key = epoch_key(seed, epoch)
    assert 0 <= key < 2**64
    order_generator(key)
    with preserved_rng():
        seed_sample(key, 10**9)


def test_seeds_epochs_and_samples_do_not_run_into_each_other():
    keys = {epoch_key(seed, epoch) for seed in range(100) for epoch in range(100)}
    assert len(keys) == 100 * 100


def test_what_is_drawn_inside_changes_nothing_outside():
    np.random.normal()  # leaves a second number in store, which is part of the state
    with preserved_rng():
        expected = draw()
    with preserved_rng():
        seed_sample(0, 0)
        draw()
    assert draw() == expected


def test_the_streams_are_restored_after_an_error_too():
    with preserved_rng():
        expected = draw()
    with pytest.raises(TypeError), preserved_rng():
        random.gauss(draw(), "nonsense")
    assert draw() == expected
