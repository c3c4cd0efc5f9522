"""A hook from a template."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookline.cli.main import main
from hookline.cli.new_hook import class_name
from tests.cli.helpers import ROOT


def run_tests(folder: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.slow
def test_a_new_hook_has_a_test_that_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-hook", "SlowDown", "--dir", str(tmp_path)]) == 0
    assert "custom_imports: [hooks.slow_down_hook]" in capsys.readouterr().out
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.py")} == {
        *("hooks/__init__.py", "hooks/slow_down_hook.py", "tests/test_slow_down_hook.py", "conftest.py")
    }
    assert "3 passed" in run_tests(tmp_path)


@pytest.mark.parametrize("given", ["slow_down", "SlowDown", "slow-down", "SlowDownHook", "slow down", "slow_down_hook"])
def test_a_name_may_be_written_as_one_likes(given: str) -> None:
    assert class_name(given) == "SlowDownHook"


@pytest.mark.parametrize("given", ["", "../evil", "a/b", "1st", "Hook", "x;import os", "ü"])
def test_what_cannot_name_a_class_is_a_mistake(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-hook", given, "--dir", str(tmp_path)]) == 2
    assert "cannot be the name of a hook" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new-hook", "Slow", "--dir", str(tmp_path)]) == 0
    (tmp_path / "hooks/slow_hook.py").write_text("mine")
    (tmp_path / "tests/test_slow_hook.py").unlink()
    assert main(["new-hook", "Slow", "--dir", str(tmp_path)]) == 2
    assert "nothing was written" in capsys.readouterr().err
    assert (tmp_path / "hooks/slow_hook.py").read_text() == "mine"
    assert not (tmp_path / "tests/test_slow_hook.py").exists()
    assert main(["new-hook", "Other", "--dir", str(tmp_path)]) == 0
