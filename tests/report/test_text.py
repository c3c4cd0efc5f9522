"""Runs as text for the terminal."""

from __future__ import annotations

from hookline.report.text import follow
from tests.report.folders import make_run

ESCAPE = "\x1b[2J"


def test_runs_that_have_ended_are_rendered_once(tmp_path):
    rows = [{"mode": "train", "iter": n, "epoch": 1, "loss": 1.0 / n} for n in range(1, 20)]
    make_run(tmp_path / "a", rows=rows)
    (screen,) = follow(tmp_path, width=40)
    lines = screen.splitlines()
    assert lines[0].startswith("unknown   a  epoch 1, iteration 19, loss 0.05")
    assert "loss" in lines
    assert "●" in screen


def test_an_empty_folder_is_reported(tmp_path):
    (screen,) = follow(tmp_path, width=40)
    assert str(tmp_path) in screen


def test_control_characters_of_names_and_texts_are_escaped(tmp_path):
    fail = {"what": "fail", "time": 2.0, "iter": 1, "epoch": 1, "error": f"bad {ESCAPE}"}
    start = {"what": "start", "time": 1.0, "iter": 0, "epoch": 0, "model": ESCAPE}
    rows = [{"mode": "train", "iter": 1, "epoch": 1, "loss": 1.0, f"x{ESCAPE}": 1.0}]
    folder = make_run(tmp_path / f"a{ESCAPE}", rows=rows, timeline=[start, fail])
    line = f"2026-01-02 03:04:06,000 WARNING odd {ESCAPE}\n"
    (folder / "hookline.log").write_text(line)
    (screen,) = follow(tmp_path, width=40)
    assert "\x1b" not in screen
    assert "warning: odd" in screen
