"""The runs below a folder."""

from __future__ import annotations

import os

import torch

from hookline.report.environment import environment
from hookline.report.run_list import RunList
from tests.report.folders import ROW, make_run, write_rows

START = {"what": "start", "time": 1.0, "iter": 0, "epoch": 0}
STOP = {"what": "stop", "time": 2.0, "iter": 5, "epoch": 1}


def no_pictures(name):
    return lambda found: []


def test_runs_are_found_below_a_folder_but_not_in_runs_or_hidden_or_deep_folders(tmp_path):
    for name in ("a", "b/c", "a/inner", ".hidden/d", "1/2/3/4"):
        make_run(tmp_path / name)
    assert {run["id"] for run in RunList(tmp_path).runs()} == {"a", "b/c"}


def test_a_folder_that_is_a_run_has_its_own_name(tmp_path):
    (run,) = RunList(make_run(tmp_path / "mine")).runs()
    assert run["id"] == "."
    assert run["name"] == "mine"


def test_running_runs_are_listed_first_then_the_newest(tmp_path):
    for name, moment in (("old", 1.0), ("new", 5.0)):
        row = {**ROW, "wall_time": moment}
        make_run(tmp_path / name, rows=[row], timeline=[START, STOP])
    alive = {**START, **environment(torch.device("cpu"))}
    make_run(tmp_path / "running", rows=[{**ROW, "wall_time": 2.0}], timeline=[alive])
    runs = RunList(tmp_path).runs()
    assert [(run["id"], run["state"]) for run in runs] == [
        ("running", "running"),
        ("new", "stopped"),
        ("old", "stopped"),
    ]


def test_a_row_changes_when_its_run_does(tmp_path):
    make_run(tmp_path / "a", timeline=[START, STOP])
    run_list = RunList(tmp_path)
    before = run_list.runs()
    assert run_list.runs() == before
    write_rows(tmp_path / "a" / "log.jsonl", [ROW, {**ROW, "iter": 2}])
    (after,) = run_list.runs()
    assert after["version"] != before[0]["version"]
    assert "iteration 2" in after["text"]


def test_a_deleted_run_disappears(tmp_path):
    folder = make_run(tmp_path / "a")
    run_list = RunList(tmp_path)
    assert len(run_list.runs()) == 1
    for path in folder.iterdir():
        os.remove(path)
    assert run_list.runs() == []
    assert run_list.folder_of("a") is None


def test_names_are_looked_up_and_never_used_as_paths(tmp_path):
    make_run(tmp_path / "runs" / "a")
    make_run(tmp_path / "outside")
    run_list = RunList(tmp_path / "runs")
    run_list.runs()
    for name in ("../outside", str(tmp_path / "outside"), "", "b"):
        assert run_list.folder_of(name) is None
        assert run_list.data([name], no_pictures)["runs"] == []
        assert run_list.picture(name, "A", 1) is None
        assert run_list.state(name).name == "unknown"


def test_a_picture_is_found_by_run_series_and_step(tmp_path):
    path = make_run(tmp_path / "a") / "visualizations" / "A" / "step_3.png"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"png")
    run_list = RunList(tmp_path)
    run_list.runs()
    found = run_list.picture("a", "A", 3)
    assert found is not None
    assert found.path == path
    assert run_list.picture("a", "A", 4) is None
    assert run_list.picture("a", "..", 3) is None


def test_the_time_left_is_shown_of_running_runs_only(tmp_path):
    rows = [{**ROW, "eta": 60.0}]
    alive = {**START, **environment(torch.device("cpu"))}
    make_run(tmp_path / "running", rows=rows, timeline=[alive])
    make_run(tmp_path / "stopped", rows=rows, timeline=[START, STOP])
    texts = {run["id"]: run["text"] for run in RunList(tmp_path).runs()}
    assert texts == {
        "running": "epoch 1, iteration 1, loss 1, 1 min 0 s left",
        "stopped": "epoch 1, iteration 1, loss 1",
    }
