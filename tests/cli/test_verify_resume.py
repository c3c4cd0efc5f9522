"""`hookline verify-resume`: the command; tests/verify has the tests of kills and comparisons."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.main import main
from hookline.cli.verify_resume import Launcher, _print_comparison, run_uninterrupted
from hookline.errors import HooklineError
from hookline.trial import ENVIRONMENT_VARIABLE
from hookline.verify.trace import STARTED
from tests.cli.helpers import error_of, write_config


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
    launcher = Launcher(["-c", "print('{work_dir}')"])
    assert launcher.start(tmp_path / "run").wait() == 0
    assert launcher.start(tmp_path / "run").wait() == 0
    assert launcher.output(tmp_path / "run").split() == [str(tmp_path / "run")] * 2


def test_a_script_that_does_not_exist_is_an_error() -> None:
    assert error_of("verify-resume", "no_such.py").value == "no_such.py"


START = f"""
import os
path = os.path.join(os.environ["{ENVIRONMENT_VARIABLE}"], "{STARTED}")
open(path, "w").write('{{"process": 1, "iteration": 0}}')
"""


@pytest.mark.parametrize(
    ("code", "match"),
    [("raise SystemExit('broken')", "broken"), ("", "drive"), (START, "CheckpointHook")],
    ids=["fails", "never trains", "never saves"],
)
def test_a_script_with_nothing_to_verify_is_an_error(tmp_path: Path, code: str, match: str) -> None:
    with pytest.raises(HooklineError, match=match):
        run_uninterrupted(Launcher(["-c", code]), tmp_path / "straight")


def test_a_directory_with_an_earlier_run_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "last.pth").touch()
    with pytest.raises(HooklineError) as caught:
        run_uninterrupted(Launcher(["-c", ""]), tmp_path)
    assert caught.value.parameter == "--work-dir"


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
