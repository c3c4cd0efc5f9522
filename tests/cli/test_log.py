"""`hookline log`: tables and curves of runs."""

from __future__ import annotations

import pytest
from PIL import Image

from hookline.cli.main import main
from hookline.events.jsonl import JSONLinesWriter


@pytest.fixture
def runs(tmp_path):
    for name, factor in (("one", 1.0), ("two", 2.0)):
        writer = JSONLinesWriter(tmp_path / name / "log.jsonl")
        for iteration in (10, 20, 30):
            writer.write_scalars("train", {"loss": factor / iteration, "time": 0.002}, iter=iteration, epoch=1)
        writer.write_scalars("val", {"accuracy": 0.5, "val_loss": 0.3}, iter=15, epoch=1)
        writer.write_scalars("val", {"accuracy": 0.4, "val_loss": 0.2}, iter=30, epoch=1)
        writer.close()
    return tmp_path


def test_the_last_and_the_best_of_everything_and_the_curve_of_the_loss(runs, capsys):
    assert main(["log", str(runs / "one")]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if "/" in line and "(" in line}
    assert rows["val/accuracy"] == ["0.4000", "(30)", "0.5000", "(15)"]
    assert rows["train/loss"] == ["0.0333", "(30)", "0.0333", "(30)"]
    assert rows["train/time"] == ["2.00ms", "(30)"]
    assert "● train/loss" in out
    assert "○ val/loss" in out


def test_several_runs_and_metrics_in_the_terminal_and_in_a_picture(runs, capsys):
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


def test_a_misspelt_metric_gets_a_suggestion(runs, capsys):
    assert main(["log", str(runs / "one"), "--metric", "acuracy"]) == 2
    assert "no run has logged 'acuracy'; did you mean 'val/accuracy'?" in capsys.readouterr().err


def test_a_folder_that_is_no_run_and_a_picture_that_cannot_be_drawn(runs, capsys):
    assert main(["log", str(runs)]) == 2
    assert "there is no log.jsonl" in capsys.readouterr().err
    assert main(["log", str(runs / "one"), "--plot", str(runs / "curves.xyz")]) == 2
    assert "--plot" in capsys.readouterr().err
