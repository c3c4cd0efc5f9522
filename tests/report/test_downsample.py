"""Thinned curves keep their extremes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hookline.report.downsample import thin
from tests.problems import raises_problem


@given(
    y=st.integers(0, 3000).flatmap(lambda n: arrays(np.float64, n, elements=st.floats(-1e6, 1e6))),
    limit=st.integers(6, 500),
)
def test_thinning_keeps_ends_and_extremes_and_adds_no_points(y, limit):
    x = np.arange(len(y)) * 3
    kept = thin(x, y, limit)
    assert len(kept.x) <= max(limit, 0) or len(y) <= limit
    assert (np.diff(kept.x) > 0).all()
    assert all(y[at // 3] == value for at, value in zip(kept.x, kept.y, strict=True))
    if len(y):
        assert (kept.x[0], kept.x[-1]) == (0, x[-1])
        assert (kept.y.min(), kept.y.max()) == (y.min(), y.max())
        assert y.min() - 1e-6 <= kept.mean_y.min() <= kept.mean_y.max() <= y.max() + 1e-6


def test_a_single_spike_is_kept_at_any_place():
    for place in (0, 1, 4_999, 99_998, 99_999):
        y = np.zeros(100_000)
        y[place] = 1.0
        kept = thin(np.arange(len(y)), y, 1000)
        assert kept.x[kept.y.argmax()] == place


def test_a_limit_that_is_too_small_is_rejected():
    with raises_problem(parameter="limit", value=3):
        thin(np.arange(9), np.arange(9.0), 3)
