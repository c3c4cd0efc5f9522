"""A run of a million points."""

from __future__ import annotations

import json
import math
import time

import pytest

from hookline.report.page import write_report

pytestmark = [pytest.mark.slow, pytest.mark.exhaustive]
POINTS = 1_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A million reports of a loss and a rate, with two extremes in them that a thinned curve must keep."""
    folder = tmp_path_factory.mktemp("large")
    with open(folder / "log.jsonl", "w") as file:
        for step in range(1, POINTS + 1):
            loss = 50.0 if step == 333_333 else -7.0 if step == 777_777 else math.exp(-step / 3e5) + 0.1 * math.sin(step * 12.9898)
            row = {"mode": "train", "iter": step, "epoch": step // 1000 + 1, "wall_time": 1e9 + step, "loss": loss, "lr": 0.001}
            file.write(json.dumps(row) + "\n")
    return folder


def test_a_million_points_become_a_small_page_in_ten_seconds_that_opens_in_two(large, open_page):
    began = time.process_time()  # of this process: what else the machine is busy with does not count
    path = write_report([large], large / "report.html")
    took, size = time.process_time() - began, path.stat().st_size
    assert took < 10, took
    assert size < 5_000_000, size
    times = []
    for _ in range(3):
        began = time.perf_counter()
        page = open_page(f"file://{path}")
        page.wait_for_selector('[data-chart="loss"] canvas')
        times.append(time.perf_counter() - began)
    opened = min(times)
    assert opened < 2, times
    print(f"made in {took:.1f} s of CPU time, {size / 1e6:.2f} MB, opened in {opened:.2f} s")
    low, high = page.evaluate(
        '(() => { const ys = charts.get("Curves\\nloss").plot.data[1]; return [Math.min(...ys), Math.max(...ys)]; })()'
    )
    assert (low, high) == (-7, 50)
    assert page.complaints == []
