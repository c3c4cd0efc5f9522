"""The data of a page, from work directories."""

from __future__ import annotations

import pytest

from hookline.errors import HooklineError
from hookline.report.collect import RunReader, collect
from tests.checkpoint.helpers import content, opened
from tests.problems import raises_problem
from tests.report.folders import make_run


def test_a_folder_without_a_run_is_an_error_with_its_path():
    with raises_problem(HooklineError, file="/no/such/run"):
        collect(["/no/such/run"])


def test_a_run_without_a_timeline_has_curves_and_an_unknown_state(tmp_path):
    (run,) = collect([make_run(tmp_path / "old")])["runs"]
    assert run["state"]["name"] == "unknown"
    assert run["curves"]["train/loss"]["y"] == [1.0]


def test_configs_are_compared_by_setting(tmp_path):
    one = make_run(tmp_path / "a/run", "optimizer: {lr: 0.1, type: SGD}\nseed: 1\n")
    two = make_run(tmp_path / "b/run", "optimizer: {lr: 0.2, type: SGD}\n")
    data = collect([one, two / "log.jsonl"])
    assert [run["name"] for run in data["runs"]] == ["a/run", "b/run"]
    assert data["differences"] == [
        {"key": "optimizer.lr", "values": ["0.1", "0.2"]},
        {"key": "seed", "values": ["1", None]},
    ]


@pytest.mark.parametrize(
    "config",
    [
        "a: &a [x]\nb: [*a, *a]\n",
        "!!python/object/apply:os.system [true]",
        "{",
        "- 1",
        "\x00",
        "[" * 5000,
    ],
    ids=range(6),
)
def test_an_invalid_config_is_shown_as_text_only(tmp_path, config):
    (run,) = collect([make_run(tmp_path / "run", config)])["runs"]
    assert (run["config"], run["settings"]) == (config, {})


def test_damaged_files_are_reported_and_the_rest_is_shown(tmp_path):
    folder = make_run(tmp_path / "run")
    for name in ("checkpoints.json", "hook_costs.json", "timeline.jsonl"):
        (folder / name).write_bytes(b"\xff{broken")
    (run,) = collect([folder])["runs"]
    assert (run["checkpoints"], run["costs"], run["sessions"]) == ([], None, [])
    assert any("checkpoints.json" in warning["text"] for warning in run["warnings"])


def test_checkpoints_are_listed_newest_first_with_notes(tmp_path):
    folder = make_run(tmp_path / "run")
    store = opened(folder)
    store.save(content(1), "epoch_1.pth", step=1, epoch=1, metrics={"loss": float("inf")})
    store.save(content(2), "exception.pth", step=2, epoch=1, tags=["inexact"])
    store.save(content(3, float("nan")), "epoch_3.pth", step=3, epoch=3)
    (run,) = collect([folder])["runs"]
    assert [entry["names"] for entry in run["checkpoints"]] == [
        ["epoch_3.pth"],
        ["exception.pth"],
        ["epoch_1.pth"],
    ]
    assert [bool(entry["note"]) for entry in run["checkpoints"]] == [True, True, False]
    assert run["checkpoints"][2]["metrics"] == {"loss": "inf"}


def test_checkpoints_in_another_directory_are_found_through_the_timeline(tmp_path):
    opened(tmp_path / "elsewhere").save(content(1), "epoch_1.pth", step=1, epoch=1)
    timeline = [{"what": "start", "time": 1.0, "checkpoints": str(tmp_path / "elsewhere")}]
    folder = make_run(tmp_path / "run", timeline=timeline)
    (run,) = collect([folder])["runs"]
    assert [entry["names"] for entry in run["checkpoints"]] == [["epoch_1.pth"]]


def test_the_best_value_of_a_metric_follows_its_direction(tmp_path):
    values = [(1, 0.5, 3.0), (2, 0.9, 1.0), (3, 0.7, 2.0)]
    rows = [{"mode": "val", "iter": n, "accuracy": a, "loss": b, "quux": b} for n, a, b in values]
    (run,) = collect([make_run(tmp_path / "run", rows=rows)])["runs"]
    assert run["best"] == {
        "val/accuracy": {"value": 0.9, "iter": 2},
        "val/loss": {"value": 1.0, "iter": 2},
    }


def test_a_value_that_is_not_finite_is_a_warning(tmp_path):
    rows = [{"mode": "train", "iter": 7, "loss": "nan"}]
    (run,) = collect([make_run(tmp_path / "run", rows=rows)])["runs"]
    (warning,) = run["warnings"]
    assert "train/loss" in warning["text"]
    assert "iteration 7" in warning["text"]


def test_one_run_twice_has_two_names(tmp_path):
    folder = make_run(tmp_path / "run")
    names = [run["name"] for run in collect([folder, folder])["runs"]]
    assert len(set(names)) == 2


def test_the_version_changes_with_the_files(tmp_path):
    reader = RunReader(make_run(tmp_path / "run"))
    before = reader.version()
    assert reader.version() == before
    (tmp_path / "run" / "hook_costs.json").write_text("{}")
    assert reader.version() != before
