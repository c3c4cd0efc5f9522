"""Directions of metrics that hooks were given or that metrics usually have."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from hookline.metrics.agreed_directions import AgreedDirections
from tests.problems import raises_problem


def make_directions(**metric_objects: Any) -> AgreedDirections:
    return AgreedDirections(metric_objects, logging.getLogger("hookline"))


def test_an_agreed_direction_comes_before_a_given_and_the_usual_one() -> None:
    directions = make_directions()
    assert directions.choose("val_loss", None) == "less"
    assert directions.choose("val_loss", "greater") == "greater"
    directions.agree("Hook", "val_loss", "less")
    assert directions.choose("val_loss", "greater") == "less"
    directions.reset()
    assert directions.choose("val_loss", "greater") == "greater"


def test_a_metric_may_state_its_direction_under_any_prefix() -> None:
    directions = make_directions(quux=SimpleNamespace(higher_is_better=False))
    assert directions.usual("clean/quux") == "less"
    assert directions.usual("frob") is None


def test_an_unknown_direction_is_greater_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    directions = make_directions()
    assert [directions.choose("frob", None) for _ in range(2)] == ["greater"] * 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_hooks_with_opposite_directions_do_not_agree(caplog: pytest.LogCaptureFixture) -> None:
    directions = make_directions()
    directions.agree("One", "accuracy", "less")
    assert [record.levelname for record in caplog.records] == ["WARNING"]  # an unusual one
    directions.agree("Two", "accuracy", "less")
    with raises_problem(component="Three", parameter="rule", path=("rule",)):
        directions.agree("Three", "accuracy", "greater")
    assert len(caplog.records) == 1
