"""Run the tests of MMEngine or MMCV with their own parts and with ours, and print a table.

    python -m scripts.openmmlab_tests mmengine SOURCE PYTHON
    python -m scripts.openmmlab_tests mmcv SOURCE PYTHON

SOURCE is a checkout of MMEngine 0.10.7 or MMCV 1.7.2. PYTHON is the interpreter of the Makefile's
`.venv-mmengine` or `.venv-mmcv`. MMCV imports torchvision; both of its runs get an empty one.

MMEngine's tests of several processes are skipped at their end, also after success. They count as
passed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree

GROUPS = {
    "mmengine": (
        "tests/test_config",
        "tests/test_hooks",
        "tests/test_logging",
        "tests/test_model",
        "tests/test_optim",
        "tests/test_registry",
        "tests/test_runner",
    ),
    "mmcv": (
        "tests/test_runner",
        "tests/test_utils",
        "tests/test_fileclient.py",
        "tests/test_fileio.py",
        "tests/test_load_model_zoo.py",
        "tests/test_parallel.py",
    ),
}
LIMIT_S = 3600
SKIPPED_AT_END = "due to the program abort"
# MMCV's runners sleep for two seconds at each epoch.
REAL = {
    "mmengine": "",
    "mmcv": """
import types
from mmcv.runner import epoch_based_runner, iter_based_runner
clock = types.SimpleNamespace(sleep=lambda seconds: None)
epoch_based_runner.time = iter_based_runner.time = clock
""",
}
WITH_HOOKLINE = """
from hookline.compat import install
install("{package}")
"""
# Processes that a test starts import it, too.
STARTUP = "import {plugin}"


def main(package: str, source: Path, python: str) -> None:
    """Print a row for each test file: the tests that pass in each run, and the lost ones."""
    print(f"| tests | {package} | with Hookline |\n| --- | --- | --- |")
    lost: list[str] = []
    sums = [0, 0]
    with tempfile.TemporaryDirectory() as folder:
        _write_plugins(package, Path(folder))
        for group in GROUPS[package]:
            real = _passed(source, python, group, Path(folder, "real_parts"))
            ours = _passed(source, python, group, Path(folder, "with_hookline"))
            for file in sorted(real.keys() | ours.keys()):
                print(f"| `{file}` | {len(real[file])} | {len(ours[file])} |", flush=True)
                sums[0] += len(real[file])
                sums[1] += len(ours[file])
                lost += [f"{file}: {test}" for test in sorted(real[file] - ours[file])]
    print(f"| all | {sums[0]} | {sums[1]} |")
    print("\n".join(["", f"Passed only with {package}:", *lost]))


def _write_plugins(package: str, folder: Path) -> None:
    plugins = {"real_parts": REAL[package], "with_hookline": WITH_HOOKLINE.format(package=package)}
    for plugin, text in plugins.items():
        (folder / plugin).mkdir()
        (folder / plugin / f"{plugin}.py").write_text(text)
        (folder / plugin / "sitecustomize.py").write_text(STARTUP.format(plugin=plugin))
    if package != "mmcv":
        return
    models = folder / "torchvision" / "models"
    models.mkdir(parents=True)
    (models / "__init__.py").touch()
    (folder / "torchvision" / "__init__.py").write_text(
        "__version__ = '0.12.0'\nfrom torchvision import models\n"
    )


def _passed(source: Path, python: str, group: str, plugin: Path) -> defaultdict[str, set[str]]:
    """Return the tests of a folder or file that pass, by file."""
    results = plugin / "results.xml"
    results.unlink(missing_ok=True)
    paths = (plugin, source, Path(__file__).parents[1], plugin.parent)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    command = [python, "-P", "-m", "pytest", "-q", "-p", plugin.name, "-p", "no:cacheprovider"]
    command += ["-c", os.devnull, "--rootdir", str(source), "-o", "junit_family=xunit1"]
    command += ["--continue-on-collection-errors", "--tb=no"]
    command += ["--junitxml", str(results), str(source / group)]
    subprocess.run(
        command, cwd=source, env=environment, capture_output=True, timeout=LIMIT_S, check=False
    )
    passed = defaultdict(set)
    for case in ElementTree.parse(results).iter("testcase"):
        if _has_passed(case):
            file = str(case.get("file")).removeprefix("tests/")
            passed[file].add(f"{case.get('classname')}.{case.get('name')}")
    return passed


def _has_passed(case: ElementTree.Element) -> bool:
    for part in case:
        if part.tag == "skipped" and SKIPPED_AT_END in str(part.get("message")):
            continue
        if not part.tag.startswith("system-"):
            return False
    return True


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve(), os.path.abspath(sys.argv[3]))
