"""`hookline log`: tables and charts of runs."""

from __future__ import annotations

import pytest
from PIL import Image

from hookline.cli.main import main
from hookline.events.jsonl import JSONLinesWriter
from tests.cli.helpers import error_of


@pytest.fixture
def runs(tmp_path):
    for name, factor in (("one", 1.0), ("two", 2.0)):
        writer = JSONLinesWriter(tmp_path / name / "log.jsonl")
        for iteration in (10, 20, 30):
            writer.write_scalars(
                "train", {"loss": factor / iteration, "time": 0.002}, iter=iteration, epoch=1
            )
        writer.write_scalars("val", {"accuracy": 0.5, "val_loss": 0.3}, iter=15, epoch=1)
        writer.write_scalars("val", {"accuracy": 0.4, "val_loss": 0.2}, iter=30, epoch=1)
        writer.close()
    return tmp_path


def test_the_table_has_last_and_best_values_and_the_loss_is_drawn(runs, capsys):
    assert main(["log", str(runs / "one")]) == 0
    out = capsys.readouterr().out
    rows = {
        line.split()[0]: line.split()[1:]
        for line in out.splitlines()
        if "/" in line and "(" in line
    }
    assert rows["val/accuracy"] == ["0.4000", "(iteration", "30)", "0.5000", "(iteration", "15)"]
    assert rows["train/loss"] == ["0.0333", "(iteration", "30)", "0.0333", "(iteration", "30)"]
    assert rows["train/time"] == ["2.00ms", "(iteration", "30)"]
    assert "● train/loss" in out
    assert "○ val/loss" in out


def test_several_runs_and_metrics_are_drawn_as_text_and_as_a_picture(runs, capsys):
    picture = runs / "curves.png"
    arguments = [
        "log",
        str(runs / "one"),
        str(runs / "two" / "log.jsonl"),
        "--metric",
        "accuracy",
        "--metric",
        "val_loss",
        "--plot",
        str(picture),
    ]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "val/accuracy of one" in out
    assert "val/loss of two" in out
    assert "train/loss" not in out
    assert Image.open(picture).size == (960, 960)


def test_runs_of_the_same_name_are_labeled_by_their_paths(runs, capsys):
    (runs / "other").mkdir()
    (runs / "one").rename(runs / "other" / "two")
    paths = [str(runs / "two"), str(runs / "other" / "two")]
    assert main(["log", *paths]) == 0
    out = capsys.readouterr().out
    assert {line.split()[0] for line in out.splitlines() if "val/accuracy" in line} == set(paths)


def test_a_misspelled_metric_gets_a_suggestion(runs):
    error = error_of("log", str(runs / "one"), "--metric", "acuracy")
    assert error.parameter == "--metric"
    assert error.suggestion.nearest == "val/accuracy"


def test_a_directory_without_a_log_is_an_error(runs):
    error_of("log", str(runs))


@pytest.mark.parametrize("name", ["curves.xyz", "no/such/directory.png"])
def test_a_picture_that_cannot_be_written_is_an_error(name, runs):
    assert error_of("log", str(runs / "one"), "--plot", str(runs / name)).parameter == "--plot"
