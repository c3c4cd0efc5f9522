"""The counters of a run: in a checkpoint, while it is evaluated, and the run's length."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hookline.counters import complete_length, counting_from, describe_position, get_counters


def run(**counters: int | None) -> SimpleNamespace:
    first = {"iter": 0, "epoch": 0, "inner_iter": 0, "batch_idx": 0, "optimizer_steps": 0}
    length = {"epoch_length": 4, "max_epochs": None, "max_iters": None}
    return SimpleNamespace(**{**first, **length, **counters})


def test_an_evaluation_of_whole_epochs_belongs_to_the_last_one() -> None:
    runner = run()
    with counting_from(runner, {"epoch": 3, "iter": 12, "inner_iter": 0}):
        assert (runner.epoch, runner.iter, runner.inner_iter) == (2, 12, 4)
    assert get_counters(runner) == {"epoch": 0, "iter": 0, "inner_iter": 0, "optimizer_steps": 0}


def test_counters_come_back_after_a_failed_evaluation() -> None:
    runner = run(iter=5, epoch=1, inner_iter=1)
    with pytest.raises(ZeroDivisionError), counting_from(runner, {"epoch": 7, "iter": 28}):
        raise ZeroDivisionError
    assert (runner.epoch, runner.iter, runner.inner_iter) == (1, 5, 1)


def test_weights_without_counters_are_evaluated_at_those_of_the_run() -> None:
    runner = run(iter=5, epoch=1, inner_iter=1)
    with counting_from(runner, None):
        assert (runner.epoch, runner.iter) == (1, 5)


def test_the_length_in_iterations_follows_from_that_in_epochs() -> None:
    runner = run(max_epochs=3)
    complete_length(runner, None)
    assert runner.max_iters == 12


def test_the_last_epoch_of_a_length_in_iterations_may_be_cut_short() -> None:
    runner = run(max_iters=9)
    complete_length(runner, 9)
    assert runner.max_epochs == 3


def test_a_run_with_other_batches_before_a_resume_keeps_its_iterations() -> None:
    runner = run(max_epochs=3, epoch=1, iter=10)  # the first epoch had ten batches
    complete_length(runner, None)
    assert runner.max_iters == 10 + 2 * 4


@pytest.mark.parametrize(
    ("counters", "is_in_iteration", "text"),
    [
        ({}, False, ""),
        ({}, True, "epoch 1, iteration 1"),
        ({"iter": 4, "epoch": 1}, False, "after iteration 4"),
        ({"iter": 5, "epoch": 1, "inner_iter": 1}, False, "epoch 2, after iteration 5"),
    ],
)
def test_a_position_names_the_iteration(
    counters: dict[str, int], is_in_iteration: bool, text: str
) -> None:
    assert describe_position(run(**counters), is_in_iteration) == text
