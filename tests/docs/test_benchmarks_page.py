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


def test_a_page_without_results_is_still_a_page(tmp_path):
    assert report.page({}).startswith("# Benchmarks")
    report.picture({}, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").exists()


def test_benchmarks_know_where_their_scripts_are():
    from benchmarks import run

    for command in {**run.SUITE, **run.PEERS}.values():
        assert Path(run.HERE / command[0]).exists()
