from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
import torchmetrics
import torchmetrics.classification as theirs
from hypothesis import given
from hypothesis import strategies as st

from hookline.metrics.means import Accuracy, Mean, MeanAbsoluteError, MeanSquaredError
from tests import processes
from tests.problems import raises_problem
from tests.waiting import LIMIT_S


def evaluate(metric, batches):
    metric.reset()
    for preds, targets in batches:
        metric.update(preds, targets)
    return float(metric.compute())


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 4), st.integers(0, 1000))
def test_accuracy_is_the_micro_average_of_torchmetrics(sizes, top_k, seed):
    generator = torch.Generator().manual_seed(seed)
    batches = [
        (
            torch.rand(size, 4, generator=generator),
            torch.randint(0, 4, (size,), generator=generator),
        )
        for size in sizes
    ]
    expected = evaluate(theirs.MulticlassAccuracy(4, top_k=top_k, average="micro"), batches)
    assert evaluate(Accuracy(top_k), batches) == pytest.approx(expected)


def test_accuracy_of_maps_counts_every_pixel():
    batches = [(torch.rand(2, 3, 5, 5), torch.randint(0, 3, (2, 5, 5)))]
    expected = evaluate(theirs.MulticlassAccuracy(3, average="micro"), batches)
    assert evaluate(Accuracy(), batches) == pytest.approx(expected)


@pytest.mark.parametrize(
    "scores",
    [torch.randn(40), torch.rand(40), torch.randn(40, 1)],
    ids=["logits", "probabilities", "column"],
)
def test_accuracy_of_binary_scores(scores):
    targets = torch.randint(0, 2, (40,))
    expected = evaluate(theirs.BinaryAccuracy(), [(scores.reshape(40), targets)])
    assert evaluate(Accuracy(), [(scores, targets)]) == pytest.approx(expected)


def test_accuracy_of_several_labels_and_of_whole_numbers():
    scores, targets = torch.randn(20, 3), torch.randint(0, 2, (20, 3))
    expected = evaluate(theirs.MultilabelAccuracy(3, average="micro"), [(scores, targets)])
    assert evaluate(Accuracy(), [(scores, targets)]) == pytest.approx(expected)
    assert evaluate(Accuracy(), [(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 1, 2]))]) == 0.75


def test_accuracy_rejects_float_targets_that_are_not_classes():
    with raises_problem(component="Accuracy") as error:
        evaluate(Accuracy(), [(torch.zeros(2, 2), torch.tensor([[7.0, 0.0], [-1.5, 1.0]]))])
    assert "mae" in error.value.suggestion.advice
    assert evaluate(Accuracy(), [(torch.tensor([[0.9, 0.1]]), torch.tensor([[1.0, 0.0]]))]) == 1.0


def test_errors_of_values_agree_with_torchmetrics():
    batches = [(torch.rand(size, 2), torch.rand(size, 2)) for size in (3, 5)]
    assert evaluate(MeanAbsoluteError(), batches) == pytest.approx(
        evaluate(torchmetrics.MeanAbsoluteError(), batches)
    )
    assert evaluate(MeanSquaredError(), batches) == pytest.approx(
        evaluate(torchmetrics.MeanSquaredError(), batches)
    )


def test_a_column_of_predictions_fits_a_row_of_targets():
    assert evaluate(MeanAbsoluteError(), [(torch.zeros(3, 1), torch.ones(3))]) == 1


@pytest.mark.parametrize("kind", [Accuracy, MeanAbsoluteError, MeanSquaredError])
def test_shapes_that_differ_are_rejected(kind):
    with raises_problem(component=kind.__name__):
        kind().update(torch.zeros(3, 2), torch.zeros(4, 2))


def test_top_k_must_be_a_number_of_classes():
    with raises_problem(component="Accuracy", parameter="top_k", value=5):
        Accuracy(top_k=5).update(torch.zeros(2, 3), torch.zeros(2))
    with raises_problem(component="Accuracy", parameter="top_k", value=0):
        Accuracy(top_k=0)


def test_one_value_per_batch_is_weighted_by_samples():
    metric = Mean(lambda preds, targets: preds.mean())
    assert (
        evaluate(metric, [(torch.zeros(1), torch.zeros(1)), (torch.ones(3), torch.zeros(3))])
        == 0.75
    )
    assert evaluate(Mean(lambda preds, targets: 2.0), [(torch.zeros(1), torch.zeros(1))]) == 2


def test_a_function_that_returns_several_numbers_is_refused_by_its_name():
    def several(predictions, targets):
        return {"a": 1.0}

    with raises_problem(component="several"):
        Mean(several).update(torch.zeros(2), torch.zeros(2))


def test_a_reset_forgets_everything():
    metric = Mean(lambda preds, targets: preds)
    evaluate(metric, [(torch.ones(2), torch.ones(2))])
    metric.reset()
    assert math.isnan(metric.compute())


def test_the_gradient_is_not_kept():
    metric = Mean(lambda preds, targets: preds.mean())
    metric.update(torch.ones(2, requires_grad=True), torch.ones(2))
    assert not metric.compute().requires_grad


RANK = """
import sys, torch
from hookline.metrics import build_metrics
rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
metrics = build_metrics(["accuracy", "f1"])
preds = torch.eye(4)[[0, 1, 2, 3] if rank == 0 else [1]]
targets = torch.tensor([0, 1, 2, 3] if rank == 0 else [0])
for metric in metrics.values():
    metric.update(preds, targets)
print(*(round(float(metric.compute()), 4) for metric in metrics.values()))
"""


@pytest.mark.slow
def test_ranks_agree_on_the_mean_over_all_their_samples(tmp_path):
    command = [sys.executable, "-c", RANK]
    ranks = [
        processes.start(
            [*command, str(rank), str(tmp_path / "store")], stdout=subprocess.PIPE, text=True
        )
        for rank in (0, 1)
    ]
    outputs = [rank.communicate(timeout=LIMIT_S)[0] for rank in ranks]
    both = [output.splitlines()[-1] for output in outputs]  # Gloo of torch 2.9 prints lines before
    assert both[0] == both[1]
    assert both[0].split()[0] == "0.8"
