"""Growth: which memory keeps growing."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.profiling.growth import MIN_GROWTH_BYTES, WINDOW, Growth

MB = 1e6


def verdicts(values, step=50):
    growth = Growth()
    return [growth.add(step * index, value) for index, value in enumerate(values)]


@pytest.mark.parametrize("per_iteration", [0.05, 1.0, 20.0])
def test_a_steady_leak_is_found_with_its_slope(per_iteration):
    found = verdicts([2e9 + per_iteration * MB * 50 * index for index in range(30)])
    expected = [slope for slope in found if slope is not None]
    assert expected
    assert expected[0] == pytest.approx(per_iteration * MB)


def test_a_leak_is_found_through_noise():
    noise = random.Random(1)
    found = verdicts([2e9 + 50 * MB * index + noise.uniform(-20, 20) * MB for index in range(40)])
    slopes = [slope for slope in found if slope is not None]
    assert slopes
    assert slopes[0] == pytest.approx(MB, rel=0.2)


def test_nothing_is_reported_before_there_are_enough_values():
    assert verdicts([1e9 + 100 * MB * index for index in range(WINDOW)]) == [None] * WINDOW


@given(st.lists(st.floats(1e9, 1e9 + 0.9 * MIN_GROWTH_BYTES), min_size=1, max_size=60))
def test_memory_that_stays_within_bounds_is_no_leak(values):
    assert not any(verdicts(values))


@pytest.mark.parametrize("level", [3, 8])
def test_memory_that_has_found_its_level_is_no_leak(level):
    assert not any(verdicts([1e9 + 3 * MB * min(index, level) for index in range(60)]))


def test_one_jump_is_no_leak():
    assert not any(verdicts([1e9 + (500 * MB if index > 12 else 0) + index for index in range(40)]))


def test_a_saw_is_no_leak():
    assert not any(verdicts([1e9 + 40 * MB * (index % 5) for index in range(60)]))
