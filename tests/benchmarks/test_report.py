from __future__ import annotations

import copy
from pathlib import Path

import pytest

from benchmarks import report, run
from benchmarks.claims import check_claims

FOUND = report.load()


def test_the_committed_page_is_made_from_the_committed_results() -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert page == report.page(FOUND), "run: python benchmarks/report.py"
    assert report.PICTURE.stat().st_size > 1000


def test_the_page_can_be_made_without_results(tmp_path: Path) -> None:
    assert report.page({}).startswith("# Benchmarks")
    report.picture({}, tmp_path / "empty.png")
    assert (tmp_path / "empty.png").exists()


def test_a_claim_that_does_not_hold_is_reported() -> None:
    before = check_claims(FOUND, run.commands())
    slow = copy.deepcopy(FOUND)
    slow["dispatch"]["results"]["10"]["Hookline"]["ratio"] = 9.0
    (problem,) = set(check_claims(slow, run.commands())) - set(before)
    assert problem.startswith("check_part_costs: one site with ten hooks: 9.000")


@pytest.mark.parametrize("name", ["peers_mlp", "growth"])
def test_missing_results_are_reported(name: str) -> None:
    found = {key: content for key, content in FOUND.items() if key != name}
    assert f"{name}: no results" in check_claims(found, run.commands())
