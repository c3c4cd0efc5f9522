from __future__ import annotations

import pytest
import torch
import torchmetrics.classification

from hookline.errors import ConfigError
from hookline.metrics import METRICS, build_metric, build_metrics, check_metric, known_metrics
from hookline.metrics.means import Accuracy
from tests.problems import fields, raises_problem


class Count:
    """A user's metric."""

    def __init__(self, step: int = 1) -> None:
        self.step, self.count = step, 0

    def update(self, preds, targets):
        self.count += self.step

    def compute(self):
        return self.count

    def reset(self):
        self.count = 0


@pytest.mark.parametrize(
    "config", ["top5", "top_5", {"type": "top5"}, {"type": "accuracy", "top_k": 5}]
)
def test_the_accuracy_among_the_five_highest_has_short_names(config):
    assert build_metric(config).top_k == 5


@pytest.mark.parametrize(
    "name",
    ["accuracy", "top5", "f1", "precision", "recall", "auroc", "mae", "mse", "MulticlassF1Score"],
)
def test_every_documented_name_is_known_and_good(name):
    assert check_metric(name) == []
    assert name in known_metrics()


def test_a_users_metric_is_found_registered_or_by_path():
    METRICS.register("count", force=True)(Count)
    assert build_metric({"type": "count", "step": 3}).step == 3
    metric = build_metric(
        {"type": "torchmetrics.classification.MulticlassAccuracy", "num_classes": 3}
    )
    metric.update(torch.eye(3), torch.arange(3))
    assert metric.compute() == 1


def half_right(preds, targets):
    return 0.5


def test_a_function_is_found_by_its_path_and_has_no_parameters():
    path = f"{__name__}.half_right"
    metrics = build_metrics([path, {"type": path, "name": "other"}])
    for metric in metrics.values():
        metric.update(torch.randn(4, 3), torch.zeros(4, dtype=torch.int64))
    assert {name: float(metric.compute()) for name, metric in metrics.items()} == {
        "half_right": 0.5,
        "other": 0.5,
    }
    (problem,) = check_metric({"type": path, "share": 0.1})
    assert fields(problem, "parameter", "path") == {"parameter": "share", "path": ("share",)}


def test_a_function_becomes_a_mean_and_an_instance_stays_what_it_is():
    metric = build_metric(lambda preds, targets: (preds - targets).abs().max())
    metric.update(torch.zeros(2), torch.ones(2))
    assert metric.compute() == 1
    instance = torchmetrics.classification.BinaryAccuracy()
    assert build_metric(instance) is instance
    assert isinstance(build_metric(Accuracy), Accuracy)


@pytest.mark.parametrize(
    ("config", "component", "parameter", "path", "nearest"),
    [
        ("acuracy", "", "type", (), "accuracy"),
        ({"type": "MulticlasF1Score"}, "", "type", ("type",), "MulticlassF1Score"),
        ({"type": "accuracy", "topk": 5}, "Accuracy", "topk", ("topk",), "top_k"),
        ({"type": "f1", "avrage": "macro"}, "F1Score", "avrage", ("avrage",), "average"),
        ({"type": "accuracy", "top_k": "five"}, "Accuracy", "top_k", ("top_k",), None),
        ({"top_k": 5}, "", "type", (), None),
        ("no.such.Metric", "", "type", (), None),
    ],
)
def test_a_wrong_metric_is_reported_without_building_it(
    config, component, parameter, path, nearest
):
    (problem,) = check_metric(config)
    assert fields(problem, "component", "parameter", "path", "nearest") == {
        "component": component,
        "parameter": parameter,
        "path": path,
        "nearest": nearest,
    }
    with raises_problem(component=component, parameter=parameter):
        build_metric(config)


def test_a_number_is_not_a_metric():
    with raises_problem(value=5):
        build_metric(5)


def test_a_metric_has_the_given_name_or_its_own():
    def spread(preds, targets):
        return preds.std()

    metrics = build_metrics(
        [
            "accuracy",
            {"type": "accuracy", "top_k": 5, "name": "top"},
            spread,
            Count(),
            {"type": "f1"},
        ]
    )
    assert list(metrics) == ["accuracy", "top", "spread", "Count", "f1"]
    assert metrics["top"].top_k == 5
    assert list(build_metrics({"a": "accuracy", "b": spread})) == ["a", "b"]
    assert build_metrics([]) == build_metrics({}) == {}


def test_a_metric_by_its_dotted_path_has_the_name_of_its_class():
    path = "tests.metrics.test_build.Count"
    metrics = build_metrics(
        [
            path,
            {"type": path, "step": 2, "name": "twos"},
            "torchmetrics.classification.BinaryAccuracy",
        ]
    )
    assert list(metrics) == ["Count", "twos", "BinaryAccuracy"]


@pytest.mark.parametrize(
    ("second", "word"), [({"type": "accuracy", "top_k": 5}, "'name'"), (Accuracy(), "dict")]
)
def test_two_metrics_of_one_name_are_rejected(second, word):
    first = "accuracy" if isinstance(second, dict) else Accuracy()
    with raises_problem(path=("metrics", 1), parameter="name") as error:
        build_metrics([first, second])
    assert word in error.value.suggestion.advice


def test_two_classes_of_one_name_are_rejected():
    with raises_problem(path=("metrics", 1), parameter="name"):
        build_metrics([Count(), "tests.metrics.test_build.Count"])


def test_a_problem_has_the_path_of_its_metric():
    with raises_problem(path=("metrics", 1, "top"), component="Accuracy", nearest="top_k"):
        build_metrics(["mae", {"type": "accuracy", "top": 5}])
    with raises_problem(path=("metrics", 0), nearest="mae"):
        build_metrics(["maee"])
    with raises_problem(path=("metrics", "error"), nearest="mae"):
        build_metrics({"error": "maee"})
    with raises_problem(path=("metrics", 0, "top_k"), component="Accuracy", value=0):
        build_metrics([{"type": "accuracy", "top_k": 0}])


def test_a_class_that_is_no_metric_is_refused_with_the_missing_methods():
    class Unfinished:
        def update(self, preds, targets):
            pass

    with pytest.raises(ConfigError) as caught:
        build_metrics(["accuracy", Unfinished])
    assert caught.value.problems[0].path == ("metrics", 1)
    assert "has no compute, reset" in str(caught.value)
    with pytest.raises(ConfigError, match="CrossEntropyLoss"):
        build_metrics([torch.nn.CrossEntropyLoss])
    assert list(build_metrics([torch.nn.CrossEntropyLoss()])) == ["CrossEntropyLoss"]


def test_one_metric_is_no_mapping_of_metrics_by_name():
    config = {"type": "accuracy", "name": "acc"}
    with pytest.raises(ConfigError) as caught:
        build_metrics(config)
    assert caught.value.value == config
    assert list(build_metrics([config])) == ["acc"]
    assert list(build_metrics({"type": half_right})) == ["type"]
