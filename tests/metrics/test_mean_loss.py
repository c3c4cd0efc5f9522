from __future__ import annotations

import pytest
import torch

from hookline.dist import World
from hookline.metrics.mean_loss import MeanLoss, as_numbers


def test_the_mean_is_weighted_by_samples_and_skips_batches_without_a_loss() -> None:
    mean = MeanLoss()
    mean.update({"loss": torch.tensor(1.0), "targets": [1, 2, 3]})
    mean.update({"loss": None, "targets": [1] * 10})
    mean.update({"loss": torch.tensor(5.0), "targets": 0})
    assert mean.compute("val_loss", World()) == {"val_loss": torch.tensor(2.0)}


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
