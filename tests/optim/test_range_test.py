"""The learning rate range test."""

from __future__ import annotations

import pytest
import torch

from hookline.optim.range_test import RangeTest, range_test
from tests.problems import raises_problem


def test_the_steepest_fall_on_the_way_to_the_minimum_is_suggested():
    losses = [2.0] * 20 + [1.8, 1.5, 0.9, 0.5, 0.4] + [0.35] * 15 + [5.0, 9.0, 3.0]
    rates = [10 ** (index / 10) for index in range(len(losses))]
    suggestion = RangeTest(rates, losses).suggestion()
    assert rates[20] <= suggestion <= rates[23]


@pytest.mark.parametrize("losses", [[], [1.0], [1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]])
def test_a_loss_that_never_falls_suggests_nothing(losses):
    assert RangeTest([0.1] * len(losses), losses).suggestion() is None


def test_it_ends_at_a_nan_loss_and_groups_keep_their_proportions():
    one, two = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
    model = torch.nn.ParameterList([one, two])
    optimizer = torch.optim.SGD([{"params": [one], "lr": 0.1}, {"params": [two], "lr": 0.2}])
    seen = []

    def step(batch):
        seen.append([group["lr"] for group in optimizer.param_groups])
        return (one + two).sum() * (float("nan") if len(seen) == 15 else 1.0)

    result = range_test(model, optimizer, step, [None, None], start=1e-3, end=1.0, count=50)
    assert len(result.rates) == 14
    assert all(second == pytest.approx(2 * first) for first, second in seen)
    assert [group["lr"] for group in optimizer.param_groups] == [0.1, 0.2]
    assert one.item() == two.item() == 1.0


def test_an_empty_loader_and_too_few_iterations_are_refused():
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters())
    with raises_problem(component="range test"):
        range_test(model, optimizer, lambda batch: model(torch.ones(1, 1)).sum(), [])
    with raises_problem(component="range test", value={"start": 1e-7, "end": 10.0, "count": 3}):
        range_test(model, optimizer, lambda batch: model(torch.ones(1, 1)).sum(), [None], count=3)
