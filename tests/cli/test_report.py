"""The command that makes a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.main import main
from tests.cli.helpers import write_config


def test_a_page_is_made_where_it_is_wanted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    run, other = tmp_path / "run", tmp_path / "other.html"
    assert (run / "report.html").is_file()  # the run has made one itself
    (run / "report.html").unlink()
    capsys.readouterr()
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    assert main(["report", str(run), str(run / "log.jsonl"), "-o", str(other)]) == 0
    assert "run (2)" in other.read_text()


def test_mistakes_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "nothing")]) == 2
    assert "give the work directory of a run" in capsys.readouterr().err
    assert main(["train", write_config(tmp_path)]) == 0
    assert main(["report", str(tmp_path / "run"), "-o", str(tmp_path / "no/such/folder.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_run_can_do_without(tmp_path: Path) -> None:
    assert main(["train", write_config(tmp_path), "drop_hooks=[ReportHook]"]) == 0
    assert not (tmp_path / "run/report.html").exists()
    assert not (tmp_path / "run/timeline.jsonl").exists()
