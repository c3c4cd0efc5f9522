from __future__ import annotations

import pytest

from hookline.metrics.results import Metrics, UnknownMetric


@pytest.mark.parametrize("name", ["accuracy", "val_accuracy", "val/accuracy", "acc", "val_acc"])
def test_every_spelling_finds_the_metric(name):
    metrics = Metrics({"accuracy": 0.5, "val_loss": 2.0})
    assert name in metrics
    assert metrics[name] == metrics.get(name) == 0.5


@pytest.mark.parametrize("name", ["loss", "val_loss", "val/loss"])
def test_a_prefix_of_the_real_name_is_optional_too(name):
    assert Metrics({"val_loss": 2.0})[name] == 2.0


def test_slash_and_underscore_are_the_same():
    assert Metrics({"clean/accuracy": 0.5})["clean_accuracy"] == 0.5


def test_iteration_shows_the_real_names_once():
    metrics = Metrics({"accuracy": 0.5, "val_loss": 2.0})
    assert list(metrics) == list(metrics.keys()) == ["accuracy", "val_loss"]
    assert len(metrics) == 2
    assert dict(metrics) == {**metrics} == {"accuracy": 0.5, "val_loss": 2.0}
    assert list(metrics.items()) == [("accuracy", 0.5), ("val_loss", 2.0)]


@pytest.mark.parametrize("name", ["accuracy", "val/acc", "nothing"])
def test_all_lookups_agree(name):
    metrics = Metrics({"accuracy": 0.5})
    found = name in metrics
    assert (name in metrics.keys()) == found  # noqa: SIM118
    assert (metrics.get(name) is not None) == found
    if found:
        assert metrics[name] == metrics.get(name)


def test_a_missing_metric_is_an_error_with_the_nearest_name():
    metrics = Metrics({"accuracy": 0.5, "val_loss": 2.0})
    with pytest.raises(UnknownMetric) as error:
        metrics["acuracy"]
    assert isinstance(error.value, KeyError)
    assert error.value.parameter == "acuracy"
    assert error.value.suggestion.nearest == "accuracy"
    assert metrics.get("acuracy") is None
    assert metrics.get("acuracy", 1.0) == 1.0


def test_an_exact_name_wins_over_another_spelling():
    metrics = Metrics({"val_loss": 2.0, "loss": 1.0})
    assert (metrics["loss"], metrics["val_loss"]) == (1.0, 2.0)


def test_assignment_uses_the_name_as_given():
    metrics = Metrics()
    metrics["wisdom"] = 0.7
    metrics.update({"val_loss": 2.0})
    assert list(metrics) == ["wisdom", "val_loss"]
    assert metrics["val/wisdom"] == 0.7


def test_deleting_accepts_every_spelling():
    metrics = Metrics({"accuracy": 0.5, "val_loss": 2.0})
    del metrics["val/accuracy"]
    assert metrics.pop("loss") == 2.0
    assert not metrics


def test_it_is_equal_to_a_dict_with_its_values_and_is_not_one():
    metrics = Metrics([("accuracy", 0.5)])
    assert metrics == {"accuracy": 0.5}
    assert metrics != {"val_accuracy": 0.5}
    assert not isinstance(metrics, dict)
    assert repr(metrics) == "Metrics({'accuracy': 0.5})"
