"""Retention: checkpoints to keep and to delete."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookline.checkpoint.retention import retain, superseded


def test_the_newest_checkpoints_are_kept():
    assert retain(["a", "b", "c"], 2) == (["b", "c"], ["a"])
    assert retain(["a"], 2) == (["a"], [])
    assert retain([], 2) == ([], [])


@pytest.mark.parametrize("limit", [0, -1])
def test_without_a_limit_all_are_kept(limit):
    assert retain([1, 2, 3], limit) == ([1, 2, 3], [])


def test_a_checkpoint_that_is_saved_again_counts_as_new():
    assert retain(["a", "b", "c", "a"], 2) == (["c", "a"], ["b"])
    assert retain(["a", "a", "a"], 2) == (["a"], [])


@given(st.lists(st.integers(0, 9)), st.integers(-1, 5))
def test_every_checkpoint_is_either_kept_or_surplus(saved, limit):
    kept, surplus = retain(saved, limit)
    assert sorted([*kept, *surplus]) == sorted(set(saved))
    if limit > 0:
        assert len(kept) == min(limit, len(set(saved)))


def test_a_new_best_checkpoint_replaces_the_previous_one():
    assert superseded("best_acc_epoch_1.pth", "best_acc_epoch_2.pth") == ["best_acc_epoch_1.pth"]
    assert superseded(None, "best_acc_epoch_2.pth") == []


def test_a_best_checkpoint_saved_under_the_same_name_is_kept():
    assert superseded("best_acc_epoch_2.pth", "best_acc_epoch_2.pth") == []
