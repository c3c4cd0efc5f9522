"""The overlay of an installed package, with a small package in the place of MMEngine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import LIMIT_S

FILES = {
    "__init__.py": "__version__ = '0.10.7'",
    "extra.py": "from mmengine.runner import Priority\nNAME = 'real'",
    "runner/__init__.py": "from .priority import Priority, get_priority",
    "runner/priority.py": "class Priority: pass\ndef get_priority(value): return 'real'",
}
CHECKS = """
import sys
from hookline.compat import install, uninstall
from hookline.errors import HooklineError
from hookline.priority import Priority

{begin}
import mmengine
import mmengine.extra
from mmengine.runner import original_priority
from hookline.compat.mmengine import extra

assert mmengine.__version__ == "0.10.7" and "hookline" not in mmengine.__file__
assert extra is mmengine.extra and extra.NAME == "real"
assert extra.Priority is Priority
assert mmengine.runner.get_priority(3) == "real"
assert original_priority.Priority is not Priority
assert mmengine.runner.priority.__name__ == "hookline.compat.mmengine.overlay.priority"
import hookline.compat.mmengine.runner
assert sys.modules["hookline.compat.mmengine.runner"] is mmengine.runner
uninstall("mmengine")
from mmengine.runner import Priority as real
assert real is not Priority
try:
    install("mmengine")
except HooklineError as error:
    print("refused", error)
"""


@pytest.mark.parametrize("begin", ["install('mmengine')", "import hookline.compat.mmengine.runner"])
def test_only_the_replaced_modules_of_an_installed_package_are_hooklines(
    begin: str, tmp_path: Path
) -> None:
    for name, text in FILES.items():
        file = tmp_path / "mmengine" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    path = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[2])])
    done = subprocess.run(
        [sys.executable, "-c", CHECKS.format(begin=begin)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused")
