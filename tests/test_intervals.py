"""Whether a repeated action is due."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hookline.intervals import IntervalMethods, is_due


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


def run_at(finished: int, *, phase: str = "after_train_iter") -> SimpleNamespace:
    """Return the counters of a run with epochs of 5 iterations, inside an iteration by default."""
    return SimpleNamespace(
        iter=finished,
        epoch=finished // 5,
        inner_iter=finished % 5,
        batch_idx=finished % 5,
        epoch_length=5,
        max_iters=20,
        max_epochs=4,
        loop=SimpleNamespace(phase=phase, owns_data=True),
    )


def iterations_with(predicate) -> list[int]:
    """Return the iterations, counted from 1, in which a predicate holds."""
    return [finished + 1 for finished in range(20) if predicate(run_at(finished))]


def test_predicates_count_the_iteration_that_is_running():
    hook = IntervalMethods()
    assert iterations_with(lambda run: hook.every_n_iters(run, 6)) == [6, 12, 18]
    assert iterations_with(lambda run: hook.every_n_iters(run, 6, start=2)) == [2, 8, 14, 20]
    assert iterations_with(lambda run: hook.every_n_inner_iters(run, 2)) == [
        2, 4, 7, 9, 12, 14, 17, 19
    ]  # fmt: skip
    assert iterations_with(hook.end_of_epoch) == [5, 10, 15, 20]
    assert iterations_with(hook.is_last_iter) == [20]


def test_predicates_count_the_epoch_that_is_running():
    hook = IntervalMethods()
    assert iterations_with(lambda run: hook.every_n_epochs(run, 3)) == [11, 12, 13, 14, 15]
    assert iterations_with(hook.is_last_epoch) == [16, 17, 18, 19, 20]


def test_between_two_iterations_predicates_count_the_finished_one():
    hook = IntervalMethods()
    assert hook.every_n_iters(run_at(6, phase=""), 6)
    assert not hook.every_n_iters(run_at(5, phase=""), 6)
