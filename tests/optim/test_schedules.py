"""Properties of the schedule functions."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hookline.optim import schedules

values = st.floats(1e-6, 10)
parts = st.floats(0, 1)
lengths = st.integers(1, 10_000)


@given(values, values, parts)
def test_annealing_stays_between_its_ends(start, target, part):
    low, high = sorted((start, target))
    for how in ("cos", "linear"):
        assert low - 1e-9 <= schedules.anneal(how, start, target, part) <= high + 1e-9
        assert schedules.anneal(how, start, target, 0.0) == pytest.approx(start)
        assert schedules.anneal(how, start, target, 1.0) == pytest.approx(target)


@given(values, lengths, st.data())
def test_decaying_schedules_never_rise(initial, end, data):
    progress = data.draw(st.integers(0, end - 1))
    for schedule in (
        lambda p: schedules.poly(initial, p, end, 0.9, 0.0),
        lambda p: schedules.flat_cosine(initial, 0.0, p, end, 0.5),
        lambda p: schedules.cosine(initial, 0.0, p / end),
        lambda p: schedules.inverse(initial, p, 0.1, 0.5),
        lambda p: schedules.exponential(initial, p, 0.99),
        lambda p: schedules.step(initial, p, 3, 0.5),
    ):
        assert 0 <= schedule(progress + 1) <= schedule(progress) <= initial + 1e-12


@given(values, lengths)
def test_a_polynomial_ends_at_its_minimum(initial, end):
    assert schedules.poly(initial, end, end, 2.0, 0.25 * initial) == pytest.approx(0.25 * initial)
    assert schedules.poly(initial, end + 5, end, 0.5, 0.0) == 0.0


@given(
    values, st.integers(1, 500), st.integers(1, 5), st.floats(0, 0.99), st.floats(0.1, 1), st.data()
)
def test_a_cyclic_schedule_stays_within_its_ratios(initial, end, times, up, gamma, data):
    progress = data.draw(st.integers(0, end))
    value = schedules.cyclic(initial, progress, end, [10, 0.1], times, up, gamma)
    assert 0.1 * initial * (1 - 1e-9) <= value <= 10 * initial * (1 + 1e-9)


@given(values, st.integers(1, 500), parts, st.booleans(), st.data())
def test_one_cycle_stays_between_its_lowest_and_highest_value(low, end, pct_start, three, data):
    progress = data.draw(st.integers(0, end - 1))
    value = schedules.one_cycle(
        low, 5 * low, low / 100, progress, end, pct_start, three_phase=three
    )
    assert low / 100 * (1 - 1e-9) <= value <= 5 * low * (1 + 1e-9)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("three_phase", [False, True])
def test_one_cycle_continues_past_its_end_as_torch_does(strategy, three_phase):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.5, 7, anneal_strategy=strategy, three_phase=three_phase
    )
    for progress in range(8):
        expected = optimizer.param_groups[0]["lr"]
        value = schedules.one_cycle(0.02, 0.5, 0.02e-4, progress, 7, 0.3, strategy, three_phase)
        assert value == pytest.approx(expected, rel=1e-12)
        optimizer.step()
        if progress < 7:
            scheduler.step()


@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), values)
def test_every_restart_begins_at_the_initial_value(periods, initial):
    weights = [1.0] * len(periods)
    start = 0
    for period in periods:
        value = schedules.cosine_restart(initial, 0.0, start, periods, weights)
        assert value == pytest.approx(initial)
        start += period
    after = schedules.cosine_restart(initial, 0.0, start + 3, periods, weights)
    assert after == pytest.approx(0.0, abs=1e-12)


def test_a_period_is_located_with_the_progress_within_it():
    located = [schedules.locate_period(progress, [2, 3]) for progress in range(7)]
    assert located == [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 3), (1, 4)]


@given(
    st.sampled_from(["constant", "linear", "exp"]),
    st.integers(1, 1000),
    st.floats(0.001, 1),
    st.data(),
)
def test_a_warm_up_starts_at_its_ratio_and_never_falls(kind, length, ratio, data):
    progress = data.draw(st.integers(0, length - 1))
    points = (0, progress, progress + 1)
    factors = [schedules.warmup_factor(kind, point, length, ratio) for point in points]
    assert factors[0] == pytest.approx(ratio)
    assert ratio - 1e-12 <= factors[1] <= factors[2] + 1e-12 <= 1 + 2e-12
