from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from hookline.dist import World
from hookline.metrics.mean_loss import MeanLoss, MeanOutputs, as_numbers


def test_the_mean_is_weighted_by_samples_and_skips_batches_without_a_loss() -> None:
    mean = MeanLoss()
    mean.update({"loss": torch.tensor(1.0), "targets": [1, 2, 3]}, None)
    mean.update({"loss": None, "targets": [1] * 10}, None)
    mean.update({"loss": torch.tensor(5.0), "targets": 0}, None)
    assert mean.compute("val_loss", World()) == {"val_loss": torch.tensor(2.0)}


@pytest.mark.parametrize("kind", ["loss", "other"])
def test_batches_without_targets_are_weighted_by_their_own_length(kind: str) -> None:
    mean: MeanLoss | MeanOutputs = MeanLoss() if kind == "loss" else MeanOutputs()
    for value, samples in ((1.0, 3), (5.0, 1)):
        outputs = {"loss": value, "other": value, "predictions": None, "targets": None}
        mean.update(outputs, [torch.zeros(samples, 2)])
    results = mean.compute("loss", World()) if isinstance(mean, MeanLoss) else mean.compute(World())
    assert results == {kind: 2.0}


def test_the_number_of_samples_or_tokens_weights_results_and_is_none_itself() -> None:
    loss, others = MeanLoss(), MeanOutputs()
    for value, tokens in ((1.0, 3), (5.0, 1)):
        outputs = {"loss": value, "error": value, "num_tokens": tokens, "num_samples": tokens}
        loss.update(outputs, None)
        others.update(outputs, None)
    assert loss.compute("val_loss", World()) == {"val_loss": 2.0}
    assert others.compute(World()) == {"error": 2.0}


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int64])
def test_numbers_of_numpy_count_like_others(kind: Any) -> None:
    others = MeanOutputs()
    for value in (1000, 2000):
        others.update({"loss": None, "error": kind(value), "flag": np.True_}, [[0] * 100])
    assert others.compute(World()) == {"error": 1500.0}


def test_there_is_no_mean_of_nothing() -> None:
    assert MeanLoss().compute("val_loss", World()) == {}


def test_results_become_numbers_with_one_name_each() -> None:
    values = {
        "a": torch.tensor(1.5),
        "b": torch.tensor([1.0, 2.0]),
        "c": {"d": torch.tensor([3.0]), 4: 4},
        "e": 5,
    }
    numbers = as_numbers(values)
    assert numbers == {"a": 1.5, "b_0": 1.0, "b_1": 2.0, "d": 3.0, "4": 4.0, "e": 5.0}
    assert all(type(number) is float for number in numbers.values())


def test_a_result_that_is_no_number_is_an_error() -> None:
    with pytest.raises((TypeError, ValueError)):
        as_numbers({"a": "text"})
