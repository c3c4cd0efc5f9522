"""The public names: listed once, imported on first use, visible to type checkers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hookline
import hookline.hooks
from hookline.engine import HOOKS

ROOT = Path(__file__).parents[1]
PACKAGES = [hookline, hookline.hooks]
# Reading torch and other packages takes most of the time, and none of our types depends on them.
MYPY_SETTINGS = """
[mypy]
strict = true
ignore_missing_imports = true
follow_imports = skip

[mypy-hookline.*]
follow_imports = silent
"""


def run(*command: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_every_listed_name_exists_and_no_other(package):
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert dir(package) == sorted(package.__all__)
    with pytest.raises(AttributeError):
        package.EmaHook  # noqa: B018


def test_every_built_in_hook_is_listed():
    built_in = {
        cls.__name__ for _, cls in HOOKS.items() if cls.__module__.startswith("hookline.hooks.")
    }
    assert built_in <= set(hookline.hooks.__all__)


def test_a_type_checker_sees_the_names(tmp_path):
    pytest.importorskip("mypy")
    user = tmp_path / "user.py"
    user.write_text(
        "from hookline import HOOKS, ConfigError, Runner, drive\n"
        "from hookline.hooks import EMAHook\n"
        "reveal_type(EMAHook(momentum=0.9).momentum)\n"
        "reveal_type(Runner)\n"
    )
    settings = tmp_path / "mypy.ini"
    settings.write_text(MYPY_SETTINGS)
    options = ("--config-file", str(settings), "--cache-dir", str(tmp_path / "cache"))
    shown = run("-m", "mypy", *options, str(user), MYPYPATH=str(ROOT))
    assert 'Revealed type is "float"' in shown
    assert 'Revealed type is "Any"' not in shown
    assert "hookline.runner.Runner" in shown
