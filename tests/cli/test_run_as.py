"""`hookline run-as`: a script with another framework's name replaced."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hookline.cli.main import main
from tests.cli.helpers import error_of

SCRIPT = """
import sys
import helper
import mmengine
print(mmengine.__name__, helper.VALUE, sys.argv, __name__)
"""


def test_a_script_gets_its_arguments_and_its_directory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    (tmp_path / "helper.py").write_text("VALUE = 7\n")
    argv = list(sys.argv)
    path = list(sys.path)
    try:
        assert main(["run-as", "mmengine", str(script), "--debug", "x"]) == 0
    finally:
        sys.modules.pop("helper", None)
    expected = f"{[str(script), '--debug', 'x']} __main__"
    assert capsys.readouterr().out.rstrip().endswith(f"7 {expected}")
    assert sys.argv == argv
    assert sys.path == path
    assert "mmengine" not in sys.modules


def test_a_missing_script_is_an_error() -> None:
    error = error_of("run-as", "mmcv", "nowhere.py")
    assert error.parameter == "SCRIPT"
    assert error.value == "nowhere.py"


def test_an_unknown_package_is_a_usage_error() -> None:
    assert main(["run-as", "mmdet", "nowhere.py"]) == 2
