"""The learning rate range test."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from hookline import make_loader
from hookline.optim.range_test import RangeTest, has_diverged, range_test
from tests.problems import raises_problem

RATES = [10 ** (-7 + 8 * index / 199) for index in range(200)]  # those of `hookline lr-find`


def falling(rate: float, bottom: float = 0.5) -> float:
    """Return a loss that falls around a rate of 1e-2, as a smooth step."""
    return bottom + (2.3 - bottom) / (1 + (rate / 1e-2) ** 2)


def noise(scale: float, seed: int) -> list[float]:
    generator = torch.Generator().manual_seed(seed)
    return (scale * torch.randn(len(RATES), generator=generator)).tolist()


def suggest(losses: list[float]) -> float | None:
    return RangeTest(RATES[: len(losses)], losses).suggestion()


EXPECTED = pytest.approx(5e-2, rel=0.5)  # where about 95% of the fall is over


def test_a_flat_start_and_a_monotone_fall_suggest_the_end_of_the_fall() -> None:
    assert suggest([falling(rate) for rate in RATES]) == EXPECTED


def test_a_divergence_after_the_fall_has_no_effect() -> None:
    losses = [falling(rate) if rate < 0.5 else 1e6 * rate for rate in RATES]
    assert suggest(losses) == EXPECTED


def test_the_suggestion_is_at_most_half_the_rate_of_the_lowest_loss() -> None:
    losses = [falling(rate) + 20 * rate for rate in RATES]
    lowest = RATES[losses.index(min(losses))]
    assert lowest / 4 < suggest(losses) <= lowest / 2


def test_a_long_plateau_after_the_fall_suggests_its_beginning() -> None:
    losses = [falling(rate) - 1e-3 * math.log(rate) for rate in RATES]
    assert suggest(losses) == EXPECTED


@pytest.mark.parametrize("seed", range(5))
def test_noise_has_little_effect(seed: int) -> None:
    random = noise(0.2, seed)
    losses = [falling(rate) + 5 * rate + each for rate, each in zip(RATES, random, strict=True)]
    assert 1e-2 < suggest(losses) < 4e-2  # 2.1e-2 without noise


@pytest.mark.parametrize("spike", [-2.0, 100.0])
@pytest.mark.parametrize("index", [0, 3, 40, 60])
def test_a_single_outlier_has_no_effect(spike: float, index: int) -> None:
    losses = [falling(rate) for rate in RATES]
    losses[index] = spike
    assert suggest(losses) == EXPECTED


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_suggests_nothing(seed: int) -> None:
    assert suggest([2.3 + each for each in noise(0.2, seed)]) is None


def test_losses_below_zero_are_possible() -> None:
    assert suggest([falling(rate) - 50 for rate in RATES]) == EXPECTED


@pytest.mark.parametrize("count", [20, 40, 400])
def test_the_suggestion_does_not_depend_on_the_number_of_iterations(count: int) -> None:
    rates = [10 ** (-7 + 8 * index / (count - 1)) for index in range(count)]
    assert 1e-2 < RangeTest(rates, [falling(rate) for rate in rates]).suggestion() < 1e-1


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([1.0] * 20 + [5.0] * 5, True),
        ([1.0] * 20 + [50.0], False),
        ([1.0] * 5 + [50.0] + [1.0] * 10, False),
        ([-50.0] * 20, False),
        ([-50.0] * 20 + [-40.0] * 5, False),
        ([-50.0] * 20 + [200.0] * 5, True),
        ([2.3] * 10 + [0.5] * 10 + [2.3] * 5, False),
        ([2.3] * 10 + [0.5] * 10 + [9.0] * 5, True),
    ],
)
def test_a_loss_has_diverged_if_it_stays_far_above_its_lowest_level(
    losses: list[float], expected: bool
) -> None:
    assert has_diverged(losses) is expected


class Rings(torch.utils.data.TensorDataset):
    """Points of the plane, and which of three rings they are in."""

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        points = torch.rand(2000, 2, generator=generator) * 2 - 1
        super().__init__(points, (points.norm(dim=1) * 2).long())


@pytest.mark.parametrize("seed", range(6))
def test_the_suggestion_for_a_small_noisy_task_is_near_the_best_rate(seed: int) -> None:
    torch.manual_seed(seed)
    layers = [nn.Linear(2, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 3)]
    model = nn.Sequential(*layers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    loader = make_loader(Rings(), batch_size=32, shuffle=True, seed=seed)

    def step(batch: Any) -> torch.Tensor:
        return nn.functional.cross_entropy(model(batch[0]), batch[1])

    suggestion = range_test(model, optimizer, step, loader).suggestion()
    assert suggestion is not None
    assert 1e-2 <= suggestion <= 1e-1  # 3e-2 is the best of a grid.


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
