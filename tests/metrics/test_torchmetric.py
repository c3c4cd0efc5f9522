from __future__ import annotations

import math

import pytest
import torch
import torchmetrics.classification as theirs

from hookline.metrics import build_metric
from tests.problems import raises_problem


def evaluate(metric, *batches):
    for preds, targets in batches:
        metric.update(preds, targets)
    return float(metric.compute())


@pytest.fixture
def classes():
    return [(torch.rand(30, 4), torch.randint(0, 4, (30,))) for _ in range(2)]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("f1", theirs.MulticlassF1Score(4)),
        ("precision", theirs.MulticlassPrecision(4)),
        ("recall", theirs.MulticlassRecall(4)),
        ("auroc", theirs.MulticlassAUROC(4)),
        ("MulticlassF1Score", theirs.MulticlassF1Score(4)),
        ({"type": "f1", "average": "micro"}, theirs.MulticlassF1Score(4, average="micro")),
        (
            {"type": "MulticlassAccuracy", "average": "macro", "sync_on_compute": False},
            theirs.MulticlassAccuracy(4),
        ),
        ("Accuracy", theirs.MulticlassAccuracy(4, average="micro")),
    ],
)
def test_the_number_of_classes_is_seen_in_the_predictions(name, expected, classes):
    assert evaluate(build_metric(name), *classes) == evaluate(expected, *classes)


def test_binary_and_multilabel_are_distinguished_by_shape():
    scores, targets = torch.rand(30), torch.randint(0, 2, (30,))
    assert evaluate(build_metric("f1"), (scores, targets)) == evaluate(
        theirs.BinaryF1Score(), (scores, targets)
    )
    scores, targets = torch.rand(30, 3), torch.randint(0, 2, (30, 3))
    assert evaluate(build_metric("f1"), (scores, targets)) == evaluate(
        theirs.MultilabelF1Score(3), (scores, targets)
    )


def test_an_unknown_number_of_classes_must_be_given():
    with raises_problem(component="MulticlassF1Score", parameter="num_classes"):
        build_metric("MulticlassF1Score").update(torch.tensor([0, 1]), torch.tensor([0, 1]))
    metric = build_metric({"type": "MulticlassF1Score", "num_classes": 2})
    assert evaluate(metric, (torch.tensor([0, 1]), torch.tensor([0, 1]))) == 1


def test_the_first_batch_is_checked_and_the_others_are_fast(classes):
    with raises_problem(component="F1Score") as error:
        build_metric("f1").update(torch.rand(4), torch.tensor([0, 1, 2, 1]))
    assert isinstance(error.value.__cause__, RuntimeError)
    metric = build_metric("f1")
    evaluate(metric, *classes)
    assert metric._metric.validate_args is False


def test_a_reset_discards_all_batches(classes):
    metric = build_metric("recall")
    first = evaluate(metric, classes[0])
    metric.reset()
    evaluate(metric, classes[1])
    metric.reset()
    assert evaluate(metric, classes[0]) == first


def test_nothing_seen_is_not_a_number():
    metric = build_metric("f1")
    metric.reset()
    assert math.isnan(metric.compute())
