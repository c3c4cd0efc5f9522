"""`hookline watch` in the terminal. tests/report has the tests of the page."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hookline.cli.main import main
from tests.cli.helpers import error_of, write_config


def test_runs_are_shown_in_the_terminal_without_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", write_config(tmp_path)]) == 0
    evil = tmp_path / "\x1b[31mred"
    evil.mkdir()
    (evil / "log.jsonl").write_text(
        '{"mode": "train", "iter": 1, "epoch": 1, "wall_time": 1.0, "loss": 1.0}\n'
    )
    capsys.readouterr()
    assert main(["watch", "--text", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "finished  run  epoch 1, iteration 5" in out
    assert "reached max_epochs=1" in out
    assert "● train/loss" in out
    assert "\x1b" not in out


def test_a_missing_directory_is_an_error(tmp_path: Path) -> None:
    error_of("watch", str(tmp_path / "nothing"))


def test_a_port_in_use_is_an_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert port in str(error_of("watch", str(tmp_path), "--port", port))


def test_an_impossible_port_is_a_usage_error(tmp_path: Path) -> None:
    assert main(["watch", str(tmp_path), "--port", "99999"]) == 2


def test_a_directory_without_runs_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["watch", "--text", str(tmp_path)]) == 0
    assert "no runs in" in capsys.readouterr().out
