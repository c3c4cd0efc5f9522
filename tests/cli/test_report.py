"""`hookline report`: the command; tests/report has the tests of the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.main import main
from tests.cli.helpers import error_of, write_config


def test_a_report_is_written_to_its_default_place_or_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path)
    assert main(["train", config]) == 0
    run, other = tmp_path / "run", tmp_path / "other.html"
    assert (run / "report.html").is_file()  # written by ReportHook
    (run / "report.html").unlink()
    capsys.readouterr()
    assert main(["report", str(run)]) == 0
    assert capsys.readouterr().out == f"{run / 'report.html'}\n"
    assert main(["report", str(run), str(run / "log.jsonl"), "-o", str(other)]) == 0
    assert "run (2)" in other.read_text()


def test_several_runs_are_reported_in_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["train", write_config(tmp_path)]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["report", "run", "run/log.jsonl"]) == 0
    assert (tmp_path / "report.html").is_file()


def test_a_missing_run_is_an_error(tmp_path: Path) -> None:
    error_of("report", str(tmp_path / "nothing"))


def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    assert main(["train", write_config(tmp_path)]) == 0
    target = str(tmp_path / "no/such/directory.html")
    assert error_of("report", str(tmp_path / "run"), "-o", target).parameter == "--output"


def test_a_run_without_report_hook_has_no_report(tmp_path: Path) -> None:
    assert main(["train", write_config(tmp_path), "drop_hooks=[ReportHook]"]) == 0
    assert not (tmp_path / "run/report.html").exists()
    assert not (tmp_path / "run/timeline.jsonl").exists()
