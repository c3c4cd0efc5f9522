"""The page of benchmarks is what the script makes of the committed results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import report

FOUND = report.load()


@pytest.mark.skipif(not FOUND, reason="no results are committed")
def test_the_page_is_what_the_script_makes_of_the_committed_results():
    assert report.PAGE.read_text(encoding="utf-8") == report.page(FOUND), "run: python benchmarks/report.py"
    assert report.PICTURE.stat().st_size > 1000


@pytest.mark.parametrize("name", sorted(FOUND))
def test_a_result_says_when_where_and_with_which_versions_it_was_measured(name):
    about = FOUND[name]["about"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", about["date"])
    assert {"python", "torch", "hookline"} <= set(about["versions"])
    assert about["machine"]["cores"] >= 1
    assert len(about["load"]) == 2


def rows(*names):
    """The rows of all set-ups in these results, as (set-up, rows)."""
    return [(key, result["rows"]) for name in names for key, result in FOUND[name]["results"].items() if key != "versions"]


@pytest.mark.parametrize("results", [("typical",), ("peers_mlp", "peers_cnn")])
def test_an_iteration_costs_what_is_promised(results):
    limits = {"mlp-minimal": 1.05, "mlp-typical": 1.10, "cnn-minimal": 1.02, "cnn-typical": 1.02}
    found = {key: contenders["Hookline"]["ratio"] for key, contenders in rows(*results)}
    assert found.keys() == limits.keys()
    assert {key: ratio for key, ratio in found.items() if ratio > limits[key]} == {}


def test_nobody_costs_less():
    for key, contenders in rows("peers_mlp", "peers_cnn"):
        others = {name: row["ratio"] for name, row in contenders.items() if name not in ("by hand", "Hookline", report.IDLE)}
        assert len(others) >= 8
        assert contenders["Hookline"]["ratio"] < min(others.values()), key


def test_idle_hooks_sites_imports_processes_pictures_and_wrapped_callbacks_cost_what_is_promised():
    results = {name: content["results"] for name, content in FOUND.items()}
    for _, contenders in rows("typical"):
        idle = contenders.get(report.IDLE, {}).get("to_hookline", {"low": 1.0, "ratio": 1.0})
        assert idle["low"] <= 1.0 or idle["ratio"] <= 1.01  # not measurable
    assert results["dispatch"]["10"]["Hookline"]["ratio"] <= 1.15
    assert results["importing"]["import torch, hookline"]["ratio"] <= 1.15
    assert results["ddp"]["step"]["ratio"] <= 1.05
    at_default_intervals = [row["clock_ratio"] for name, row in results["pictures"].items() if "default" in name]
    assert len(at_default_intervals) == 2
    assert max(at_default_intervals) <= 1.03
    assert all(row["more"] <= 3.0 for sites in results["foreign"].values() for row in sites.values())


def test_cost_does_not_grow():
    growth = FOUND["growth"]["results"]
    marks = [row["ratio"] for row in growth["iterations"].values()]
    assert list(growth["iterations"])[-1] == "1000000"
    assert max(marks) / marks[0] <= 1.05
    assert growth["hooks"]["+ 100 idle"]["low"] <= 1.0


def test_a_result_is_of_the_benchmark_as_it_is_run_today():
    from benchmarks import run

    for name, command in {**run.SUITE, **run.PEERS}.items():
        assert FOUND[name]["about"]["command"] == " ".join(["python", f"benchmarks/{command[0]}", *command[1:]]), name


def test_new_ratios_are_told_beside_those_before():
    from benchmarks import run

    before = {"a": {"b": {"ratio": 1.0, "low": 0.9, "high": 1.1}, "us": 3.0}, "gone": {"ratio": 1.0, "low": 1.0, "high": 1.0}}
    now = {"a": {"b": {"ratio": 1.3, "low": 1.2, "high": 1.4}, "us": 4.0}, "new": {"ratio": 1.0, "low": 1.0, "high": 1.0}}
    assert [line.split() for line in run.compared(before, now)] == [["a", "b", "1.000", "→", "1.300", "OTHER", "THAN", "BEFORE"]]
    assert run.compared(before, before)[0].endswith("as before")


def test_a_page_without_results_is_still_a_page(tmp_path):
    assert report.page({}).startswith("# Benchmarks")
    report.picture({}, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").exists()


def test_benchmarks_know_where_their_scripts_are():
    from benchmarks import run

    for command in {**run.SUITE, **run.PEERS}.values():
        assert Path(run.HERE / command[0]).exists()
