from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
import torch

from hookline.dist import World
from hookline.errors import HooklineError
from hookline.metrics.evaluators import DatasetEvaluator, explain_failure, full_name

LOGGER = logging.getLogger("hookline")


class Judging:
    """A dataset that counts the predictions that it gets."""

    def evaluate(self, predictions):
        return {"count": len(predictions), "first": predictions[0]}


class Logging:
    """A dataset that wants the logger."""

    def evaluate(self, predictions, logger=None):
        return {"logged": logger is LOGGER}


def evaluator(dataset: object) -> DatasetEvaluator:
    return DatasetEvaluator(SimpleNamespace(dataset=dataset), LOGGER)


def test_a_dataset_gets_the_predictions_of_all_batches() -> None:
    judge = evaluator(Judging())
    assert judge
    judge.update(torch.tensor([7, 8], dtype=torch.float32).requires_grad_())
    judge.update([9])
    results = judge.compute(World())
    assert results == {"count": 3, "first": 7}
    assert not results["first"].requires_grad


def test_a_dataset_that_takes_a_logger_gets_it() -> None:
    assert evaluator(Logging()).as_metrics([1]) == {"logged": True}


@pytest.mark.parametrize("dataset", [object(), SimpleNamespace(evaluate=3), None])
def test_a_dataset_may_have_no_evaluation(dataset: object) -> None:
    judge = evaluator(dataset)
    assert not judge
    assert judge.as_metrics({"a": 1}) == {"a": 1}
    with pytest.raises(HooklineError):
        judge.as_metrics([1, 2])


def test_a_test_function_returns_metrics_or_predictions() -> None:
    judge = evaluator(Judging())
    model = torch.nn.Linear(1, 1)
    assert judge.apply(lambda model, loader: {"a": torch.tensor(1.0)}, model, World()) == {"a": 1.0}
    assert judge.apply(lambda model, loader: [4, 5], model, World()) == {"count": 2, "first": 4}


def test_metrics_of_a_named_loader_have_its_name_in_front() -> None:
    assert full_name("", "val_loss", "val") == "val_loss"
    assert full_name("clean", "val_loss", "val") == "clean/loss"
    assert full_name("clean", "accuracy", "val") == "clean/accuracy"


def test_an_error_of_a_metric_names_its_input() -> None:
    error = ValueError("no")
    outputs = {"predictions": torch.ones(2, 3), "targets": torch.ones(2)}
    assert explain_failure(error, "accuracy", outputs, object(), "val") is error
    assert "[2, 3]" in error.__notes__[0]


@pytest.mark.parametrize(
    ("model", "mode", "who"),
    [
        (object(), "val", "the model"),
        (SimpleNamespace(val_step=1), "test", "val_step"),
        (SimpleNamespace(val_step=1, test_step=1), "test", "test_step"),
    ],
)
def test_a_missing_input_is_blamed_on_the_step(model: object, mode: str, who: str) -> None:
    outputs = {"predictions": None, "targets": 1}
    error = explain_failure(TypeError("no"), "accuracy", outputs, model, mode)
    assert isinstance(error, HooklineError)
    assert str(error).startswith(who)
    assert "'predictions'" in str(error)
    assert "'targets'" not in str(error)
