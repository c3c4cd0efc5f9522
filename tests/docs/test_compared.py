"""What the comparison says about speed in words is what the committed results say in figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import report

FOUND = report.load()
PAGE = (Path(__file__).parents[2] / "docs" / "compared.md").read_text(encoding="utf-8")


def ratios(result: str, setup: str) -> dict[str, float]:
    rows = FOUND[result]["results"][setup]["rows"]
    return {name: row["ratio"] for name, row in rows.items() if name not in ("by hand", report.IDLE)}


@pytest.mark.skipif("peers_mlp" not in FOUND, reason="no results are committed")
@pytest.mark.parametrize("setup", ["mlp-minimal", "mlp-typical"])
def test_on_a_tiny_model_hookline_costs_least_and_ignite_and_fabric_come_next(setup):
    order = sorted(ratios("peers_mlp", setup), key=ratios("peers_mlp", setup).__getitem__)
    assert order[0] == "Hookline"
    assert set(order[1:3]) == {"Ignite", "Lightning Fabric"}


@pytest.mark.skipif("peers_cnn" not in FOUND, reason="no results are committed")
def test_on_a_small_cnn_several_others_come_within_a_few_percent():
    assert sum(ratio < 1.09 for name, ratio in ratios("peers_cnn", "cnn-minimal").items() if name != "Hookline") >= 3


@pytest.mark.skipif("importing_peers" not in FOUND, reason="no results are committed")
def test_accelerate_takes_about_as_long_to_import_and_the_others_longer():
    seconds = {name: row["seconds"] for name, row in FOUND["importing_peers"]["results"].items()}
    ours, accelerate = seconds["from hookline import Runner"], seconds["from accelerate import Accelerator"]
    assert ours / accelerate == pytest.approx(1.0, abs=0.4)
    assert all(
        other > ours for name, other in seconds.items() if "torch" not in name and "hookline" not in name and "accelerate" not in name
    )


def test_the_page_repeats_no_figures_of_the_benchmarks():
    speed = PAGE.partition("## Speed")[2]
    assert "](benchmarks.md)" in speed
    assert not re.search(r"\d\.\d", speed)


def test_where_others_are_better_comes_first():
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert headings[0] == "Where others are the better choice"
    assert PAGE.partition(headings[1])[0].count("\n| ") > 10


@pytest.mark.parametrize(
    ("framework", "name"), [("Lightning", "Lightning"), ("MMEngine", "MMEngine"), ("transformers", "HF Trainer"), ("Ignite", "Ignite")]
)
def test_the_versions_are_those_that_were_measured(framework, name):
    if "peers_mlp" in FOUND:
        assert f"{framework} {FOUND['peers_mlp']['results']['versions'][name]} |" in PAGE
