"""Options of means with other names."""

from __future__ import annotations

from typing import Any

import pytest

from hookline.events.named_means import check_named_means
from tests.problems import raises_problem

ABOUT = {"component": "SomeHook", "parameter": "means"}


@pytest.mark.parametrize("over", [1, 100, "epoch", "global"])
def test_a_mean_is_over_a_number_of_values_an_epoch_or_the_run(over: Any) -> None:
    check_named_means("SomeHook", {"smooth": {"of": "loss", "over": over}})


@pytest.mark.parametrize("over", [0, -1, 1.5, "epochs", None])
def test_any_other_period_is_an_error_with_its_place(over: Any) -> None:
    with raises_problem(path=("means", "smooth", "over"), value=over, **ABOUT):
        check_named_means("SomeHook", {"smooth": {"of": "loss", "over": over}})


def test_the_error_for_an_unknown_key_suggests_the_nearest_one() -> None:
    with raises_problem(path=("means", "smooth", "ovr"), nearest="over", **ABOUT):
        check_named_means("SomeHook", {"smooth": {"of": "loss", "ovr": 3}})


def test_both_keys_are_needed() -> None:
    with raises_problem(path=("means", "smooth"), value={"of": "loss"}, **ABOUT):
        check_named_means("SomeHook", {"smooth": {"of": "loss"}})
