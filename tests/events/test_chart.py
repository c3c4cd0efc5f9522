"""Charts of overlapping curves, in the terminal and in a picture."""

from __future__ import annotations

import numpy as np
from PIL import Image

from hookline.cli.main import main
from hookline.events.chart import text_chart
from hookline.events.jsonl import JSONLinesWriter


def log(folder, losses):
    writer = JSONLinesWriter(folder / "log.jsonl")
    for iteration, loss in enumerate(losses, start=1):
        writer.write_scalars("train", {"loss": loss}, iter=iteration, epoch=1)
    writer.close()
    return str(folder)


def test_points_that_several_curves_share_have_a_separate_mark_in_the_legend():
    lines = text_chart(
        {"up": [(0, 0.0), (10, 1.0)], "level": [(0, 0.0), (10, 0.0)]}, width=11, height=3
    ).splitlines()
    assert lines[0] == "1 │          ●"
    assert lines[2] == "0 │◆         ○"
    assert lines[5:] == ["   ● up", "   ○ level", "   ◆ several curves"]


def test_points_of_one_curve_that_lie_close_are_not_shared():
    assert "◆" not in text_chart(
        {"one": [(0, 0.0), (0.01, 0.0), (10, 1.0)], "two": [(10, 0.0)]}, width=11, height=3
    )


def test_both_of_two_equal_runs_are_visible(tmp_path, capsys):
    losses = [1.0 / (1 + step) for step in range(40)]
    runs = [log(tmp_path / name, losses) for name in ("one", "two")]
    assert main(["log", *runs, "--metric", "loss", "--plot", str(tmp_path / "curves.png")]) == 0
    out = capsys.readouterr().out
    assert "● train/loss of one" in out
    assert "○ train/loss of two" in out
    assert "◆ several curves" in out
    assert "●" not in out.partition("● train/loss of one")[0]
    picture = np.asarray(Image.open(tmp_path / "curves.png").convert("RGB")).astype(int)[
        :, : 960 // 2
    ]  # without the legend
    for color in ((31, 119, 180), (255, 127, 14)):  # matplotlib's first two
        assert (np.abs(picture - color).sum(2) < 12).sum() > 50
