from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.data.permutation import MAX_LENGTH, FeistelPermutation

LENGTHS = (4000, 4099, 65_536)  # many and few rounds; with and without cells that are no samples
SAMPLES = 300_000  # in all orders of a test together


def permute(length: int, key: int) -> np.ndarray:
    return FeistelPermutation(length, key)(np.arange(length))


def deviation(observed: np.ndarray, expected: float, freedom: int) -> float:
    """The chi-squared statistic, in standard deviations from its mean."""
    statistic = ((observed - expected) ** 2 / expected).sum()
    return (statistic - freedom) / math.sqrt(2 * freedom)


@given(st.integers(1, 5000), st.integers(0, 2**64 - 1))
def test_every_sample_has_exactly_one_position(length, key):
    assert np.array_equal(np.sort(permute(length, key)), np.arange(length))


@given(st.integers(1, MAX_LENGTH), st.integers(0, 2**64 - 1), st.data())
def test_different_positions_of_a_huge_order_have_different_samples(length, key, data):
    positions = data.draw(st.sets(st.integers(0, length - 1), min_size=1, max_size=50))
    samples = FeistelPermutation(length, key)(np.array(sorted(positions)))
    assert len(set(samples.tolist())) == len(positions)
    assert samples.min() >= 0
    assert samples.max() < length


@given(st.integers(1, 3000), st.integers(0, 2**64 - 1), st.data())
def test_the_sample_of_a_position_does_not_depend_on_the_other_positions(length, key, data):
    position = data.draw(st.integers(0, length - 1))
    (sample,) = FeistelPermutation(length, key)(np.array([position]))
    assert sample == permute(length, key)[position]


@pytest.mark.parametrize("length", [0, -1, MAX_LENGTH + 1])
def test_a_length_out_of_range_is_rejected(length):
    with pytest.raises(ValueError, match=str(length)):
        FeistelPermutation(length, 0)


def test_the_arithmetic_has_not_changed():
    # Checkpoints rely on these orders: a change needs a new shuffle method.
    assert permute(10, 7).tolist() == [3, 7, 4, 2, 5, 9, 8, 1, 0, 6]
    assert permute(4095, 7)[:4].tolist() == [738, 1647, 1787, 1145]
    assert permute(4096, 7)[:4].tolist() == [667, 1012, 2590, 1340]
    positions = np.array([0, 1, 2, 5 * 10**9, 10**10 - 1])
    assert FeistelPermutation(10**10, 7)(positions).tolist() == [
        6826668263,
        6071291083,
        9410627295,
        2046932449,
        3294130925,
    ]


@pytest.mark.parametrize("length", [2, 3, 5])
def test_all_orders_of_a_few_samples_are_equally_likely(length):
    keys = 2400
    counts = dict.fromkeys(itertools.permutations(range(length)), 0)
    for key in range(keys):
        counts[tuple(permute(length, key).tolist())] += 1
    expected = keys / len(counts)
    assert abs(deviation(np.array([*counts.values()]), expected, len(counts) - 1)) < 4


@pytest.mark.parametrize("length", LENGTHS)
def test_each_part_of_the_data_is_spread_evenly_over_the_epoch(length):
    grid = np.zeros((10, 10))
    edges = np.linspace(0, length, 11)
    keys = SAMPLES // length
    for key in range(keys):
        grid += np.histogram2d(np.arange(length), permute(length, key), [edges, edges])[0]
    # The rows and columns of a permutation are fixed, so its counts vary a little less.
    rows = np.diff(np.ceil(edges))
    expected = np.outer(rows, rows) * keys / length
    assert abs(deviation(grid, expected, 81)) < 4


@pytest.mark.parametrize("length", LENGTHS)
def test_neighbors_in_the_data_are_not_neighbors_in_the_epoch(length):
    keys = 4 * SAMPLES // length
    orders = [permute(length, key) for key in range(keys)]
    # A random order has two pairs of neighbors on average, and as many rises as falls.
    pairs = sum(int((np.abs(np.diff(order)) == 1).sum()) for order in orders)
    assert abs(pairs - 2 * keys) < 4 * math.sqrt(2 * keys)
    rises = sum(int((np.diff(order) > 0).sum()) for order in orders)
    assert abs(rises - keys * (length - 1) / 2) < 4 * math.sqrt(keys * length / 12)
    fixed = sum(int((order == np.arange(length)).sum()) for order in orders)
    assert abs(fixed - keys) < 4 * math.sqrt(keys)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("gap", [1, 17])
def test_nearby_samples_of_an_epoch_are_not_correlated(length, gap):
    keys = SAMPLES // length
    total = 0.0
    for key in range(keys):
        order = permute(length, key)
        total += np.corrcoef(order[:-gap], order[gap:])[0, 1] + 1 / length
    assert abs(total / keys) < 4 / math.sqrt(length * keys)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("step", [1, 2**32])
def test_orders_of_similar_keys_are_not_correlated(length, step):
    keys = SAMPLES // length
    total = 0.0
    equal = 0
    for key in range(keys):
        order, other = permute(length, key), permute(length, key + step)
        total += np.corrcoef(order, other)[0, 1]
        equal += int((order == other).sum())
    assert abs(total / keys) < 4 / math.sqrt(length * keys)
    assert abs(equal - keys) < 4 * math.sqrt(keys)
