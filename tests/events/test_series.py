"""The values of one scalar."""

from __future__ import annotations

import pytest
import torch

from hookline.events.series import Scalar, Series, fetch, fetch_numbers


def series_of(*values, window=3, running=None) -> Series:
    series = Series(smoothed=True, window=window, running=running)
    for index, value in enumerate(values):
        series.append(value, (index, index // 2, 0.0))
    return series


def test_a_window_keeps_the_last_values():
    series = series_of(1.0, 2.0, 3.0, 4.0)
    assert list(series.window) == [2.0, 3.0, 4.0]
    assert series.last(2) == [3.0, 4.0]
    assert series.last(10) == [2.0, 3.0, 4.0]
    assert series.last_iter() == 3


@pytest.mark.parametrize(("count", "mean"), [(1, 4.0), (2, 3.5), (10, 3.0)])
def test_a_mean_covers_the_last_values(count, mean):
    assert series_of(1.0, 2.0, 3.0, 4.0).mean(count) == mean


def test_running_means_cover_values_that_are_no_longer_kept():
    running = {"global": [0.0, 0.0, 0.0], "epoch": [0.0, 0.0, 0.0]}
    series = series_of(1.0, 2.0, 3.0, 5.0, window=1, running=running)
    assert series.running_mean("global") == 2.75
    assert series.running_mean("epoch") == 4.0


def test_a_history_holds_values_with_their_moments():
    assert series_of(1.0, 2.0).history() == [Scalar(1.0, 0, 0, 0.0), Scalar(2.0, 1, 0, 0.0)]


def test_a_loaded_series_has_its_values_and_their_moments():
    series = series_of(1.0, 2.0)
    loaded = Series(smoothed=True, window=3)
    loaded.load_state_dict(series.state_dict())
    assert list(loaded.window) == [1.0, 2.0]
    assert (loaded.history(), loaded.last_iter()) == (series.history(), series.last_iter())
    loaded.append(3.0, (2, 1, 4.0))
    assert loaded.history() == [*series.history(), Scalar(3.0, 2, 1, 4.0)]


def test_a_series_of_a_checkpoint_without_moments_keeps_those_of_later_values():
    loaded = Series(smoothed=True, window=3)
    loaded.load_state_dict({"window": [1.0, 2.0], "smoothed": True, "last_iter": 1})
    assert (list(loaded.window), loaded.history(), loaded.last_iter()) == ([1.0, 2.0], [], 1)
    loaded.append(3.0, (2, 1, 4.0))
    again = Series(smoothed=True, window=3)
    again.load_state_dict(loaded.state_dict())
    assert list(again.window) == [1.0, 2.0, 3.0]
    assert again.history() == [Scalar(3.0, 2, 1, 4.0)]


def test_pending_tensors_become_numbers():
    series = Series(smoothed=True, window=3)
    series.pending += [torch.tensor(1.5), 2.5, torch.tensor([3])]
    series.pending_moments += [(index, 0, 0.0) for index in range(3)]
    series.on_device = True
    fetch([series])
    series.settle()
    assert list(series.window) == [1.5, 2.5, 3.0]


def test_numbers_of_equal_and_of_mixed_tensors_are_fetched_in_order():
    assert fetch_numbers([torch.tensor(1), torch.tensor(2)]) == [1.0, 2.0]
    assert fetch_numbers([torch.tensor(1), torch.tensor([0.5]).double()]) == [1.0, 0.5]
