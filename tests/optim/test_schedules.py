"""The laws that schedules keep."""

from __future__ import annotations

import pytest
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
        assert low - 1e-9 <= schedules.annealed(how, start, target, part) <= high + 1e-9
        assert schedules.annealed(how, start, target, 0.0) == pytest.approx(start)
        assert schedules.annealed(how, start, target, 1.0) == pytest.approx(target)


@given(values, lengths, st.data())
def test_falling_schedules_never_rise_and_end_where_they_should(base, end, data):
    at = data.draw(st.integers(0, end - 1))
    for schedule in (
        lambda p: schedules.poly(base, p, end, 0.9, 0.0),
        lambda p: schedules.flat_cosine(base, 0.0, p, end, 0.5),
        lambda p: schedules.cosine(base, 0.0, p / end),
        lambda p: schedules.inverse(base, p, 0.1, 0.5),
        lambda p: schedules.exponential(base, p, 0.99),
        lambda p: schedules.step(base, p, 3, 0.5),
    ):
        assert 0 <= schedule(at + 1) <= schedule(at) <= base + 1e-12
    assert schedules.poly(base, end, end, 2.0, 0.25 * base) == pytest.approx(0.25 * base)
    assert schedules.poly(base, end + 5, end, 0.5, 0.0) == 0.0


@given(values, st.integers(1, 500), st.integers(1, 5), st.floats(0, 0.99), st.floats(0.1, 1), st.data())
def test_a_cyclic_schedule_is_defined_everywhere_and_stays_in_its_bounds(base, end, times, up, gamma, data):
    at = data.draw(st.integers(0, end))
    assert 0.1 * base * (1 - 1e-9) <= schedules.cyclic(base, at, end, [10, 0.1], times, up, gamma) <= 10 * base * (1 + 1e-9)


@given(values, st.integers(1, 500), parts, st.booleans(), st.data())
def test_one_cycle_is_defined_everywhere_and_stays_in_its_bounds(low, end, pct, three, data):
    at = data.draw(st.integers(0, end + 3))
    value = schedules.one_cycle(low, 5 * low, low / 100, at, end, pct, three_phase=three)
    assert low / 100 * (1 - 1e-9) <= value <= 5 * low * (1 + 1e-9)


@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), values)
def test_every_restart_begins_at_the_top(periods, base):
    begun = 0
    for period in periods:
        assert schedules.cosine_restart(base, 0.0, begun, periods, [1.0] * len(periods)) == pytest.approx(base)
        begun += period
    assert schedules.cosine_restart(base, 0.0, begun + 3, periods, [1.0] * len(periods)) == pytest.approx(0.0, abs=1e-12)


@given(st.sampled_from(["constant", "linear", "exp"]), st.integers(1, 1000), st.floats(0.001, 1), st.data())
def test_a_warm_up_starts_at_its_ratio_and_never_falls(kind, length, ratio, data):
    at = data.draw(st.integers(0, length - 1))
    factors = [schedules.warmup_factor(kind, p, length, ratio) for p in (0, at, at + 1)]
    assert factors[0] == pytest.approx(ratio)
    assert ratio - 1e-12 <= factors[1] <= factors[2] + 1e-12 <= 1 + 2e-12
