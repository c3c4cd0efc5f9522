"""`hookline new-hook`: a hook and its test from templates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.cli.main import main
from hookline.cli.new_hook import class_name, hooks_package
from tests.cli.helpers import ROOT, error_of
from tests.waiting import LIMIT_S


def run_tests(folder: Path) -> str:
    """Run the tests of a project in a new process, and return the output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.slow
def test_a_new_hook_has_a_test_that_passes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new-hook", "SlowDown", "--dir", str(tmp_path)]) == 0
    assert "custom_imports: [hooks.slow_down_hook]" in capsys.readouterr().out
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")} == {
        "hooks/__init__.py",
        "hooks/slow_down_hook.py",
        "tests/test_slow_down_hook.py",
        "conftest.py",
    }
    assert "3 passed" in run_tests(tmp_path)


@pytest.mark.parametrize(
    "given", ["slow_down", "SlowDown", "slow-down", "SlowDownHook", "slow down", "slow_down_hook"]
)
def test_a_name_may_have_any_spelling(given: str) -> None:
    assert class_name(given) == "SlowDownHook"


@pytest.mark.parametrize("given", ["", "../evil", "a/b", "1st", "Hook", "x;import os", "ü"])
def test_an_invalid_class_name_is_rejected(given: str, tmp_path: Path) -> None:
    assert error_of("new-hook", given, "--dir", str(tmp_path)).parameter == "NAME"
    assert not list(tmp_path.iterdir())


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    assert main(["new-hook", "Slow", "--dir", str(tmp_path)]) == 0
    (tmp_path / "hooks/slow_hook.py").write_text("mine")
    (tmp_path / "tests/test_slow_hook.py").unlink()
    assert main(["new-hook", "Slow", "--dir", str(tmp_path)]) == 2
    assert (tmp_path / "hooks/slow_hook.py").read_text() == "mine"
    assert not (tmp_path / "tests/test_slow_hook.py").exists()
    assert main(["new-hook", "Other", "--dir", str(tmp_path)]) == 0


def test_a_hook_goes_into_the_package_of_the_project(tmp_path: Path) -> None:
    assert hooks_package(tmp_path) == Path("hooks")
    for name in ("not-a-package", "project"):
        (tmp_path / name / "hooks").mkdir(parents=True)
        (tmp_path / name / "hooks" / "__init__.py").touch()
    assert hooks_package(tmp_path) == Path("project/hooks")
