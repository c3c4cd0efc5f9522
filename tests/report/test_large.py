"""A report of a run with a million points."""

from __future__ import annotations

import json
import math

import pytest

from hookline.report.page import write_report

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]
POINTS = 1_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A million rows with a loss and a rate, and two extremes that a thinned curve must keep."""
    folder = tmp_path_factory.mktemp("large")
    with open(folder / "log.jsonl", "w") as file:
        for step in range(1, POINTS + 1):
            loss = math.exp(-step / 3e5) + 0.1 * math.sin(step * 12.9898)
            loss = {333_333: 50.0, 777_777: -7.0}.get(step, loss)
            row = {
                "mode": "train",
                "iter": step,
                "epoch": step // 1000 + 1,
                "wall_time": 1e9 + step,
                "loss": loss,
                "lr": 0.001,
            }
            file.write(json.dumps(row) + "\n")
    return folder


def test_a_million_points_become_a_small_page_that_keeps_the_extremes(large, open_page):
    path = write_report([large], large / "report.html")
    assert path.stat().st_size < 5_000_000
    page = open_page(f"file://{path}")
    page.wait_for_selector('[data-chart="loss"] canvas')
    values = page.evaluate('charts.get("Curves\\nloss").plot.data[1]')
    assert min(values) == -7
    assert max(values) == 50
    assert page.complaints == []
