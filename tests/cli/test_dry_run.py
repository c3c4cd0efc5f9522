"""`hookline dry-run`: output and exit codes; tests/dry_run has the tests of the findings."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hookline.checkpoint import CheckpointStore
from hookline.cli.main import main
from tests.cli.helpers import write_config

FAILING = "hooks=[{type: EarlyStoppingHook, monitor: val_lossy}]"


def test_a_good_config_exits_with_0_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dry-run", write_config(tmp_path), "training.epochs=2"]) == 0
    text = capsys.readouterr().out
    rows = dict(re.split(r"  +", line, maxsplit=1) for line in text.splitlines() if "  " in line)
    assert rows["tried"].startswith("training, validation, saving")
    assert rows["samples read"].startswith("training 1,257 of 1,257, validation 270 of 270")
    assert rows["whole run"].startswith("about ")
    assert "free" in rows["disk"]
    assert "peak" in rows["memory"]
    assert ": no errors, " in text.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["config.yaml"]


def test_a_failing_run_exits_with_1_and_shows_the_error_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dry-run", write_config(tmp_path), FAILING]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("error: training: ")
    assert "val_lossy" in lines[0]
    assert ": 1 error, " in lines[-1]


def test_a_wrong_config_exits_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    override = "hooks=[{type: EarlyStoppingHook, patiance: 3}]"
    assert main(["dry-run", write_config(tmp_path), override]) == 2
    assert "did you mean 'patience'?" in capsys.readouterr().out


def test_json_has_findings_and_estimates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dry-run", write_config(tmp_path), FAILING, "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["ready"] is False
    (error,) = [finding for finding in result["findings"] if finding["level"] == "error"]
    assert set(error) == {"level", "where", "text", "advice"}
    assert result["memory"]["weights"] > 0


def test_options_win_over_the_config(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    directory = tmp_path / "other"
    store = CheckpointStore(directory)
    directory.mkdir()
    store.lock()
    try:
        assert main(["dry-run", config, "--work-dir", str(directory)]) == 1
    finally:
        store.unlock()
    assert main(["dry-run", config, "--work-dir", str(directory), "--device", "cpu"]) == 0


def test_rehearse_still_works_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rehearse", write_config(tmp_path), "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["ready"] is True
    assert "deprecated" in captured.err
