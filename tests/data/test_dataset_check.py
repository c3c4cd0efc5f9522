"""Values that are mistaken for datasets."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from hookline import ConfigError
from hookline.data import make_loader

SAMPLES = [torch.zeros(3) for _ in range(8)]


class Stream(IterableDataset):
    def __iter__(self):
        return iter(SAMPLES)


@pytest.mark.parametrize(
    "value",
    [
        (sample for sample in SAMPLES),
        iter(SAMPLES),
        map(torch.neg, SAMPLES),
        set(range(4)),
        {"train": SAMPLES, "val": SAMPLES},
        "digits",
        TensorDataset,
        DataLoader(TensorDataset(torch.zeros(8, 3))),
        make_loader(SAMPLES),
        (torch.zeros(8, 3), torch.zeros(8)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_known_mistake_is_rejected_with_advice(value):
    with pytest.raises(ConfigError) as caught:
        make_loader(value, batch_size=2)
    assert caught.value.parameter == "dataset"
    assert caught.value.value is value
    assert caught.value.suggestion.advice


@pytest.mark.parametrize("value", [3, None, object()])
def test_a_value_without_samples_is_rejected(value):
    with pytest.raises(ConfigError) as caught:
        make_loader(value)
    assert caught.value.parameter == "dataset"


@pytest.mark.parametrize(
    "value",
    [SAMPLES, tuple(SAMPLES), torch.zeros(8, 3), dict(enumerate(SAMPLES)), Stream()],
    ids=lambda value: type(value).__name__,
)
def test_every_sequence_of_samples_is_accepted(value):
    assert len(next(iter(make_loader(value, batch_size=2)))) == 2
