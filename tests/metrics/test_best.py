from __future__ import annotations

import logging
import math
from types import SimpleNamespace

import pytest

from hookline.errors import ConfigError
from hookline.metrics.best import BestTracker, TrackedMetric

LOGGER = logging.getLogger("hookline")


@pytest.fixture
def tracker() -> BestTracker:
    return BestTracker({}, LOGGER)


def test_the_best_value_is_kept_with_its_place(tracker) -> None:
    tracker.track(TrackedMetric("Hook", "metric", "accuracy"))
    for number, value in enumerate((0.5, 0.7, 0.7, 0.6), 1):
        tracker.update({"accuracy": value}, epoch=number, iteration=10 * number)
        assert bool(tracker.improved("Hook")) is (number < 3)
    assert tracker["accuracy"] == {"value": 0.7, "epoch": 2, "iter": 20, "rule": "greater"}
    assert (list(tracker), len(tracker)) == (["accuracy"], 1)


def test_less_of_a_loss_is_better(tracker) -> None:
    tracker.track(TrackedMetric("Hook", "metric", "val_loss"))
    for number, value in enumerate((0.5, 0.4, 0.6), 1):
        tracker.update({"val_loss": value}, number, number)
    assert tracker["val_loss"]["value"] == 0.4


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_not_finite_is_never_the_best(tracker, value: float) -> None:
    tracker.track(TrackedMetric("Hook", "metric", "accuracy"))
    tracker.update({"accuracy": value}, 1, 1)
    assert not tracker
    assert tracker.improved("Hook") == []


def test_a_second_evaluation_of_an_iteration_replaces_the_first(tracker) -> None:
    tracker.track(TrackedMetric("Hook", "metric", "accuracy"))
    tracker.update({"accuracy": 0.9}, 1, 10)
    tracker.update({"accuracy": 0.8}, 1, 10)
    assert tracker["accuracy"]["value"] == 0.8


def test_two_hooks_of_one_metric_both_hear_of_an_improvement(tracker) -> None:
    for name in ("One", "Two"):
        tracker.track(TrackedMetric(name, "metric", "accuracy"))
    tracker.update({"accuracy": 0.9}, 1, 1)
    assert tracker.improved("One") == tracker.improved("Two") == ["accuracy"]
    tracker.update({"accuracy": 0.1}, 2, 2)
    assert tracker.improved("One") == tracker.improved("Two") == []


def test_tracking_a_metric_again_replaces_the_first_request(tracker) -> None:
    for direction in ("less", "greater"):
        tracker.track(TrackedMetric("Hook", "metric", "score", direction))
    tracker.update({"score": 1.0}, 1, 1)
    assert tracker.improved("Hook") == ["score"]
    assert tracker["score"]["rule"] == "greater"


@pytest.mark.parametrize(
    ("tracked", "direction"),
    [
        ({"direction": "less", "greater_keys": ["sco"]}, "less"),
        ({"greater_keys": ["sco"], "less_keys": ["ore"]}, "greater"),
        ({"less_keys": ["ore"]}, "less"),
        ({}, None),
    ],
)
def test_the_direction_may_be_given_in_several_ways(tracked, direction) -> None:
    assert TrackedMetric("Hook", "metric", **tracked).given_direction("score") == direction


def test_a_metric_knows_its_direction_itself() -> None:
    objects = {"quux": SimpleNamespace(higher_is_better=False), "frob": SimpleNamespace()}
    tracker = BestTracker({**objects, "up": SimpleNamespace(higher_is_better=True)}, LOGGER)
    assert tracker.usual_direction("clean/quux") == "less"
    assert tracker.usual_direction("up") == "greater"
    assert tracker.usual_direction("frob") is None
    assert tracker.usual_direction("val_loss") == "less"


def test_an_unknown_direction_is_greater_and_warned_about_once(tracker, caplog) -> None:
    tracker.track(TrackedMetric("Hook", "metric", "quux"))
    for number, value in enumerate((1.0, 2.0), 1):
        tracker.update({"quux": value}, number, number)
    assert tracker["quux"]["value"] == 2.0
    assert len(caplog.records) == 1


def test_opposite_directions_of_two_hooks_are_an_error(tracker) -> None:
    tracker.track(TrackedMetric("One", "metric", "accuracy", "greater"))
    tracker.track(TrackedMetric("Two", "metric", "accuracy", "less"))
    with pytest.raises(ConfigError) as caught:
        tracker.check(["accuracy"], others_possible=False)
    assert (caught.value.component, caught.value.parameter) == ("Two", "rule")


def test_a_direction_against_the_usual_one_is_warned_about(tracker, caplog) -> None:
    tracker.track(TrackedMetric("One", "metric", "val_loss", "greater"))
    tracker.check(["val_loss"], others_possible=False)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_metric_that_is_not_measured_is_an_error_with_the_nearest(tracker) -> None:
    tracker.require("Hook", "monitor", "val_accuracyy")
    with pytest.raises(ConfigError) as caught:
        tracker.check(["val_accuracy", "val_loss"], others_possible=True)
    error = caught.value
    assert (error.component, error.parameter) == ("Hook", "monitor")
    assert error.suggestion.nearest == "val_accuracy"


def test_a_name_unlike_all_others_may_come_from_a_hook(tracker) -> None:
    tracker.require("Hook", "monitor", "quux")
    tracker.check(["accuracy"], others_possible=True)
    tracker.check(None, others_possible=False)
    with pytest.raises(ConfigError):
        tracker.check(["accuracy"], others_possible=False)


def test_an_element_of_a_metric_is_measured(tracker) -> None:
    tracker.require("Hook", "monitor", "recall_2")
    tracker.check(["recall"], others_possible=False)


def test_a_hook_without_a_metric_follows_the_default_of_another(tracker) -> None:
    tracker.track(TrackedMetric("Hook", "metric"))
    tracker.default_metric = "val_loss"
    tracker.update({"accuracy": 0.5, "val_loss": 1.0}, 1, 1)
    assert tracker.improved("Hook") == ["val_loss"]


def test_the_best_is_saved_if_one_hook_of_each_kind_wants_it(tracker) -> None:
    assert tracker.should_save
    tracker.vote_on_saving("checkpoint", False)
    assert not tracker.should_save
    tracker.vote_on_saving("checkpoint", True)
    assert tracker.should_save
    tracker.vote_on_saving("evaluation", False)
    assert not tracker.should_save


def test_a_missing_metric_is_warned_about_after_the_first_validation(tracker, caplog) -> None:
    tracker.require("Hook", "monitor", "quux")
    tracker.track(TrackedMetric("Other", "metric", "auto"))
    tracker.track(TrackedMetric("Third", "metric", "accuracy"))
    for _ in range(2):
        tracker.warn_about_missing({"val_loss": 1.0})
    assert len(caplog.records) == 1
    assert "quux" in caplog.text


def test_records_come_back_as_copies_and_requests_are_forgotten(tracker) -> None:
    tracker.track(TrackedMetric("Hook", "metric", "accuracy"))
    tracker.update({"accuracy": 0.9}, 1, 1)
    saved = tracker.state_dict()
    other = BestTracker({}, LOGGER)
    other.load_state_dict(saved)
    saved["accuracy"]["value"] = 0.0
    assert other["accuracy"]["value"] == tracker["accuracy"]["value"] == 0.9
    tracker.reset()
    tracker.update({"accuracy": 1.0}, 2, 2)
    assert tracker["accuracy"]["value"] == 0.9
    assert tracker.improved("Hook") == []
