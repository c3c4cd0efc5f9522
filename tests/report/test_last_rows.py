"""The last rows of a run's log."""

from __future__ import annotations

import pytest

from hookline.report.last_rows import LastReport, describe_time_left, last_report
from tests.report.folders import ROW, make_run

EVALUATION = {"mode": "val", "iter": 2, "epoch": 1, "wall_time": 3.0, "step": 1}


def test_the_last_report_has_the_loss_the_metrics_and_the_time_left(tmp_path):
    rows = [
        {**ROW, "eta": 125.0, "time": 0.1},
        {**EVALUATION, "accuracy": 0.5, "val_loss": 0.25},
        {"mode": "train", "iter": 3, "epoch": 2, "wall_time": 4.0, "system/cpu": 10.0},
    ]
    assert last_report(make_run(tmp_path / "a", rows=rows)) == LastReport(
        "epoch 2, iteration 3", "loss 1, accuracy 0.5, val_loss 0.25", "2 min 5 s left", 4.0
    )


def test_metrics_of_any_name_are_shown_but_only_a_few(tmp_path):
    metrics = dict.fromkeys(("miou", "dice", "f1", "recall"), 0.5)
    folder = make_run(tmp_path / "a", rows=[{**EVALUATION, **metrics}])
    assert last_report(folder).results == "miou 0.5, dice 0.5, f1 0.5"


def test_torn_lines_are_skipped_and_a_missing_log_is_empty(tmp_path):
    folder = make_run(tmp_path / "a")
    with (folder / "log.jsonl").open("a") as file:
        file.write('{"mode": "tr')
    assert last_report(folder) == LastReport("epoch 1, iteration 1", "loss 1", "", 1.0)
    assert last_report(tmp_path / "absent") == LastReport()


@pytest.mark.parametrize("seconds", [-1.0, 1e300, float("inf"), float("nan")])
def test_an_estimate_of_no_use_is_not_shown(seconds):
    assert describe_time_left(seconds) == ""
