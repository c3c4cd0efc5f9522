"""Watching in the terminal; the page has tests of its own, with a browser."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hookline.cli.main import main
from tests.cli.helpers import write_config


def test_runs_in_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", write_config(tmp_path)]) == 0
    evil = tmp_path / "\x1b[31mred"
    evil.mkdir()
    (evil / "log.jsonl").write_text('{"mode": "train", "iter": 1, "epoch": 1, "wall_time": 1.0, "loss": 1.0}\n')
    capsys.readouterr()
    assert main(["watch", "--text", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "finished  run  epoch 1, iteration 5" in out
    assert "reached max_epochs=1" in out
    assert "● train/loss" in out
    assert "\x1b" not in out


def test_mistakes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", str(tmp_path / "nothing")]) == 2
    assert "there is no such folder" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["watch", str(tmp_path), "--port", str(taken.getsockname()[1])]) == 2
    assert "cannot be used" in capsys.readouterr().err
    assert main(["watch", str(tmp_path), "--port", "99999"]) == 2


def test_a_folder_without_runs_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "--text", str(tmp_path)]) == 0
    assert "no runs in" in capsys.readouterr().out
