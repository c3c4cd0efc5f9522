from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torchmetrics.classification

from hookline.errors import ConfigError
from hookline.metrics import METRICS, build_metric, build_metrics, check_metric, known_metrics
from hookline.metrics.means import Accuracy


class Count:
    """A metric of a user."""

    def __init__(self, step: int = 1) -> None:
        self.step, self.count = step, 0

    def update(self, preds, targets):
        self.count += self.step

    def compute(self):
        return self.count

    def reset(self):
        self.count = 0


@pytest.mark.parametrize("config", ["top5", "top_5", {"type": "top5"}, {"type": "accuracy", "top_k": 5}])
def test_the_accuracy_among_the_five_highest_has_short_names(config):
    assert build_metric(config).top_k == 5


@pytest.mark.parametrize("name", ["accuracy", "top5", "f1", "precision", "recall", "auroc", "mae", "mse", "MulticlassF1Score"])
def test_every_documented_name_is_known_and_good(name):
    assert check_metric(name) == []
    assert name in known_metrics()


def test_a_users_metric_is_found_registered_or_by_path():
    METRICS.register("count", force=True)(Count)
    assert build_metric({"type": "count", "step": 3}).step == 3
    metric = build_metric({"type": "torchmetrics.classification.MulticlassAccuracy", "num_classes": 3})
    metric.update(torch.eye(3), torch.arange(3))
    assert metric.compute() == 1


def test_a_function_becomes_a_mean_and_an_instance_stays_what_it_is():
    metric = build_metric(lambda preds, targets: (preds - targets).abs().max())
    metric.update(torch.zeros(2), torch.ones(2))
    assert metric.compute() == 1
    instance = torchmetrics.classification.BinaryAccuracy()
    assert build_metric(instance) is instance
    assert isinstance(build_metric(Accuracy), Accuracy)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("acuracy", "unknown metric 'acuracy'; did you mean 'accuracy'?"),
        ({"type": "MulticlasF1Score"}, "type: unknown metric 'MulticlasF1Score'; did you mean 'MulticlassF1Score'?"),
        ({"type": "accuracy", "topk": 5}, "topk: Accuracy: unknown parameter 'topk'; did you mean 'top_k'?"),
        ({"type": "f1", "avrage": "macro"}, "avrage: F1Score: unknown parameter 'avrage'; did you mean 'average'?"),
        ({"type": "accuracy", "top_k": "five"}, "top_k: Accuracy: 'top_k' must be a whole number, got 'five'"),
        ({"top_k": 5}, "missing 'type': the name of a metric"),
        ("no.such.Metric", "unknown metric 'no.such.Metric': there is no module 'no.such'"),
    ],
)
def test_a_wrong_metric_is_told_without_building_it(config, message):
    (problem,) = check_metric(config)
    assert str(problem) == message
    with pytest.raises(ConfigError):
        build_metric(config)


def test_something_else_is_no_metric():
    with pytest.raises(ConfigError, match="a metric is a name, a mapping"):
        build_metric(5)


def test_metrics_are_named_after_themselves_or_as_told():
    def spread(preds, targets):
        return preds.std()

    metrics = build_metrics(["accuracy", {"type": "accuracy", "top_k": 5, "name": "top"}, spread, Count(), {"type": "f1"}])
    assert list(metrics) == ["accuracy", "top", "spread", "Count", "f1"]
    assert metrics["top"].top_k == 5
    assert list(build_metrics({"a": "accuracy", "b": spread})) == ["a", "b"]
    assert build_metrics([]) == build_metrics({}) == {}


def test_a_metric_by_its_dotted_path_has_the_name_of_its_class():
    path = "tests.metrics.test_build.Count"
    metrics = build_metrics([path, {"type": path, "step": 2, "name": "twos"}, "torchmetrics.classification.BinaryAccuracy"])
    assert list(metrics) == ["Count", "twos", "BinaryAccuracy"]


@pytest.mark.parametrize(
    ("second", "advice"),
    [
        ({"type": "accuracy", "top_k": 5}, r"give one of them another 'name', as in \{type: accuracy, name: …\}"),
        (Accuracy(), "pass them as a dict, by names of your choice"),
    ],
)
def test_two_metrics_of_one_name_are_refused(second, advice):
    first = "accuracy" if isinstance(second, dict) else Accuracy()
    with pytest.raises(ConfigError, match=rf"^metrics\[1\]: two metrics are called '[aA]ccuracy'; {advice}$"):
        build_metrics([first, second])


def test_two_classes_of_one_name_are_refused():
    with pytest.raises(
        ConfigError, match=r"^metrics\[1\]: two metrics are called 'Count'; .*type: tests.metrics.test_build.Count, name: …"
    ):
        build_metrics([Count(), "tests.metrics.test_build.Count"])


def test_a_problem_says_where():
    with pytest.raises(ConfigError, match=r"^metrics\[1\].top: .*unknown parameter"):
        build_metrics(["mae", {"type": "accuracy", "top": 5}])
    with pytest.raises(ConfigError, match=r"^metrics\[0\]: unknown metric 'maee'; did you mean 'mae'\?"):
        build_metrics(["maee"])
    with pytest.raises(ConfigError, match=r"^metrics.error: unknown metric 'maee'"):
        build_metrics({"error": "maee"})
    with pytest.raises(ConfigError, match=r"^metrics\[0\]: accuracy: top_k must be at least 1, got 0"):
        build_metrics([{"type": "accuracy", "top_k": 0}])


def test_torchmetrics_is_imported_on_use_only():
    code = """
import sys
from hookline.metrics import build_metrics, check_metric
build_metrics(["accuracy", "top5", "mae", "mse", lambda preds, targets: 0.0])
check_metric({"type": "accuracy", "top_k": 3})
sys.exit("torchmetrics" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
