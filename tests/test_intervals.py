"""Whether a repeated action is due."""

from __future__ import annotations

import pytest

from hookline.intervals import is_due


def due_at(*args, **kwargs) -> list[int]:
    return [completed for completed in range(1, 11) if is_due(completed, *args, **kwargs)]


def test_an_action_is_due_at_multiples_of_its_interval():
    assert due_at(3) == [3, 6, 9]
    assert due_at(1) == list(range(1, 11))


def test_the_interval_counts_from_the_start():
    assert due_at(3, 4) == [4, 7, 10]
    assert due_at(3, start=1) == [1, 4, 7, 10]
    assert due_at(4, start=11) == []


@pytest.mark.parametrize("interval", [0, -1])
def test_without_an_interval_an_action_is_due_at_the_end_only(interval):
    assert due_at(interval) == []
    assert due_at(interval, end=10) == [10]


def test_an_action_may_be_due_at_the_end_as_well():
    assert due_at(4, end=10) == [4, 8, 10]
    assert due_at(4, start=20, end=10) == [10]
