"""Curves in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from hookline.report.bounded import MAX_PIECES, BoundedCurve


def make_curve(values: np.ndarray, chunk: int) -> BoundedCurve:
    curve = BoundedCurve()
    for start in range(0, len(values), chunk):
        piece = values[start : start + chunk]
        curve.extend(list(range(start + 1, start + len(piece) + 1)), piece.tolist())
    return curve


def test_a_short_curve_is_exact():
    values = np.random.default_rng(0).normal(size=MAX_PIECES)
    kept = make_curve(values, 7).thinned(MAX_PIECES)
    assert kept.x.tolist() == list(range(1, MAX_PIECES + 1))
    assert kept.y.tolist() == values.tolist()


@pytest.mark.parametrize("count", [MAX_PIECES + 1, 100_003])
@pytest.mark.parametrize("limit", [200, 4000])
def test_a_long_curve_keeps_ends_extremes_counts_and_means(count, limit):
    values = np.random.default_rng(count).normal(size=count)
    values[count // 3], values[count // 2] = 50.0, -50.0
    curve = make_curve(values, 1009)
    kept = curve.thinned(limit)
    assert curve.count() == count
    assert len(kept.x) <= limit
    assert (np.diff(kept.x) >= 0).all()
    assert (kept.x[0], kept.x[-1]) == (1, count)
    assert (kept.y.min(), kept.y.max()) == (-50.0, 50.0)
    assert all(values[x - 1] == y for x, y in zip(kept.x, kept.y, strict=True))
    assert kept.mean_y.mean() == pytest.approx(values.mean(), abs=0.05)
    assert len(curve.steps) <= MAX_PIECES


def test_the_pieces_do_not_depend_on_how_the_points_arrive():
    values = np.random.default_rng(1).normal(size=50_000)
    one, other = make_curve(values, 1), make_curve(values, 50_000)
    one.fold()
    other.fold()
    assert (one.steps == other.steps).all()
    assert (one.values[:, :2] == other.values[:, :2]).all()


def test_huge_values_stay_finite():
    curve = make_curve(np.full(MAX_PIECES * 3, 1e308), 4096)
    kept = curve.thinned(200)
    assert np.isfinite(kept.mean_y).all()
