"""`hookline verify-resume`: the command; tests/verify has the tests of kills and comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.main import main
from hookline.cli.verify_resume import Launcher, _print_comparison
from tests.cli.helpers import error_of, write_config
from tests.waiting import LIMIT_S


def test_a_wrong_config_is_an_error_before_anything_is_trained(tmp_path: Path) -> None:
    config = write_config(tmp_path, "sede: 3\n")
    error = error_of("verify-resume", config, "--work-dir", str(tmp_path / "runs"))
    assert error.suggestion.nearest == "seed"
    assert not (tmp_path / "runs").exists()


def test_a_failing_run_is_an_error_with_its_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_config(tmp_path)
    overrides = ["device=cuda:77", "--work-dir", str(tmp_path / "runs")]
    error = error_of("verify-resume", config, *overrides)
    assert "cuda:77" in str(error)


def test_the_number_of_kills_must_be_positive(tmp_path: Path) -> None:
    assert main(["verify-resume", write_config(tmp_path), "--kills", "0"]) == 2


def test_a_launcher_collects_the_output_of_all_runs_in_a_directory(tmp_path: Path) -> None:
    launcher = Launcher("no_such_config.yaml", ["seed=2"])
    assert launcher.start(tmp_path / "run").wait(LIMIT_S) == 2
    assert launcher.start(tmp_path / "run").wait(LIMIT_S) == 2
    assert launcher.output(tmp_path / "run").count("no_such_config.yaml") == 2


@pytest.mark.parametrize(
    ("differences", "code", "line"),
    [
        ([], 0, "weights  equal"),
        (["a: 1 and 2"], 1, "weights  a: 1 and 2"),
        (["a: 1 and 2", "b", "c"], 1, "weights  a: 1 and 2 (and 2 more)"),
    ],
)
def test_the_comparison_shows_the_first_difference_of_each_subject(
    differences: list[str], code: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _print_comparison({"weights": differences, "log": []}) == code
    assert capsys.readouterr().out.splitlines()[0] == line
