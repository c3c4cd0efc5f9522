"""Counting samples, tokens and floating point operations."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from hookline.batches import count_samples
from hookline.profiling.counting import FlopCount, count_tokens


@pytest.mark.parametrize(
    "outputs, batch, count",
    [
        ({"num_samples": 3}, None, 3),
        ({"targets": torch.zeros(5)}, None, 5),
        ({}, {"x": torch.zeros(4, 2)}, 4),
        ({"targets": None}, (torch.zeros(6, 2), None), 6),
        ({}, torch.zeros(7), 7),
        ({}, object(), 1),
    ],
)
def test_samples_are_counted_whatever_a_batch_is(outputs, batch, count):
    assert count_samples(outputs, batch) == count


@pytest.mark.parametrize(
    "batch, count",
    [
        ({"input_ids": torch.zeros(2, 5, dtype=torch.int64), "labels": torch.zeros(2)}, 10),
        ((torch.zeros(3, 4, dtype=torch.int64), torch.zeros(3)), 12),
        ((torch.zeros(3, 4), torch.zeros(3)), 0),
        ((torch.zeros(3, 3, 8, 8), torch.zeros(3)), 0),
        ({"label": torch.zeros(2)}, 0),
    ],
)
def test_tokens_are_the_ids_of_a_batch(batch, count):
    assert count_tokens(batch) == count


def models():
    yield "mlp", nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), torch.randn(8, 16)
    yield (
        "cnn",
        nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 4)
        ),
        torch.randn(2, 3, 8, 8),
    )
    yield (
        "attention",
        nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True),
        torch.randn(2, 5, 16),
    )


@pytest.mark.parametrize(
    "name, model, inputs", list(models()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_count_is_that_of_torch_and_changes_no_bit(name, model, inputs):
    def step():
        model.zero_grad()
        model(inputs).square().mean().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    plain = step()
    count = FlopCount()
    count.start()
    counted = step()
    count.stop()
    with FlopCounterMode(display=False) as reference:
        step()
    assert count.flops == reference.get_total_flops() > 0
    assert all(torch.equal(one, two) for one, two in zip(plain, counted, strict=True))


def test_stopping_twice_or_never_having_started_is_fine():
    count = FlopCount()
    count.stop()
    count.start()
    torch.ones(2, 3) @ torch.ones(3, 4)
    count.stop()
    count.stop()
    torch.ones(2, 3) @ torch.ones(3, 4)
    assert count.flops == 2 * 2 * 3 * 4
