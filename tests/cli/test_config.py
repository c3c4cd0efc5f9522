"""`hookline config`: check configs and print them."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hookline.cli.main import main
from hookline.config import load_config
from tests.cli.helpers import ROOT, error_of, write_config


def test_the_printed_config_loads_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path)
    overrides = ["optimizer.lr=1e-3", "model.dropout=0.5", "hooks.eval=null"]
    assert main(["config", config, *overrides]) == 0
    (tmp_path / "again.yaml").write_text(capsys.readouterr().out)
    assert load_config(tmp_path / "again.yaml") == load_config(config, overrides)


def test_secrets_are_masked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(
        tmp_path, "  - {type: tests.config.my_parts.PatientHook, token: 123456}\n"
    )
    assert main(["config", config]) == 0
    captured = capsys.readouterr()
    assert yaml.safe_load(captured.out)["hooks"][1]["token"] == "***"
    assert "123456" not in captured.out + captured.err
    assert main(["config", config, "+hooks.logger.api_key=abc123"]) == 2
    captured = capsys.readouterr()
    assert "api_key" in captured.err
    assert "abc123" not in captured.out + captured.err


def test_checking_a_good_config_prints_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", write_config(tmp_path), "--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_checking_a_broken_config_prints_only_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", write_config(tmp_path, "sede: 3\n"), "model.widht=3", "--check"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "config.yaml:10: sede: unknown key; did you mean 'seed'?" in captured.err
    assert "did you mean 'width'?" in captured.err


def test_a_misspelled_file_name_gets_a_suggestion(tmp_path: Path) -> None:
    write_config(tmp_path)
    error = error_of("config", str(tmp_path / "confg.yaml"))
    assert "config.yaml" in str(error)


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    hooks = """\
  - type: EarlyStoppingHook
    patience: -3
  - {type: EMAHook, momentum: 1.5, name: mean}
  - {type: LogerHook}
"""
    config = write_config(tmp_path, hooks)
    error = error_of("config", config, "hooks.logger.interval=0", "model.widht=3")
    assert len(error.problems) == 5
    assert {problem.file for problem in error.problems} == {config, "command line"}
    rejecting = " ".join(problem.component for problem in error.problems)
    for name in ("EarlyStoppingHook", "EMAHook", "LoggerHook", "CNN"):
        assert name in rejecting
    nearest = {problem.suggestion.nearest for problem in error.problems}
    assert {"LoggerHook", "width"} <= nearest


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("hookline/configs/*.yaml")), ids=lambda path: path.name
)
def test_the_configs_of_the_repository_are_good(path: Path) -> None:
    assert main(["config", str(path), "--check"]) == 0
