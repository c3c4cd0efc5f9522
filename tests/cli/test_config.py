from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hookline.cli.main import main
from hookline.config import load_config
from tests.cli.helpers import ROOT, write_config


def test_the_resolved_config_is_printed_and_loads_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path)
    overrides = ["optimizer.lr=1e-3", "model.dropout=0.5", "hooks.eval=null"]
    assert main(["config", config, *overrides]) == 0
    (tmp_path / "again.yaml").write_text(capsys.readouterr().out)
    assert load_config(tmp_path / "again.yaml") == load_config(config, overrides)


def test_secrets_are_masked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = write_config(tmp_path, "  - {type: tests.config.my_parts.PatientHook, token: 123456}\n")
    assert main(["config", config]) == 0
    shown = capsys.readouterr()
    assert yaml.safe_load(shown.out)["hooks"][1]["token"] == "***"
    assert "123456" not in shown.out + shown.err
    assert main(["config", config, "+hooks.logger.api_key=abc123"]) == 2
    shown = capsys.readouterr()
    assert "unknown parameter 'api_key'" in shown.err
    assert "abc123" not in shown.out + shown.err


def test_checking_a_good_config_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", write_config(tmp_path), "--check"]) == 0
    assert capsys.readouterr() == ("", "")


def test_checking_a_broken_config_lists_all_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", write_config(tmp_path, "sede: 3\n"), "model.widht=3", "--check"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "config.yaml:10: sede: unknown key; did you mean 'seed'?" in shown.err
    assert "did you mean 'width'?" in shown.err


def test_all_that_is_wrong_is_told_at_once_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hooks = """\
  - type: EarlyStoppingHook
    patience: -3
  - {type: EMAHook, momentum: 1.5, name: mean}
  - {type: LogerHook}
"""
    assert main(["config", write_config(tmp_path, hooks), "hooks.logger.interval=0", "model.widht=3"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert [line.partition(" must ")[0].partition(" is ")[0].removeprefix(f"{tmp_path}/") for line in err.splitlines()] == [
        "config.yaml:11: hooks[1] EarlyStoppingHook: patience and min_delta",
        "config.yaml:12: hooks[2] mean (EMAHook): momentum",
        "config.yaml:13: hooks[3].type: unknown hook 'LogerHook'; did you mean 'LoggerHook'?",
        "command line: model CNN: unknown parameter 'widht'; did you mean 'width'?",
        "command line: hooks[0] LoggerHook: interval",
    ]


@pytest.mark.parametrize("path", sorted(ROOT.glob("configs/*.yaml")), ids=lambda path: path.name)
def test_the_configs_of_the_repository_are_good(path: Path) -> None:
    assert main(["config", str(path), "--check"]) == 0
