"""The examples run as scripts."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

EXAMPLES = Path(__file__).parents[2] / "examples"
PACKAGE = EXAMPLES / "hook_package"


IN_CI = ("classification", "gan")  # the other examples take longer and are similar
MARKED = [
    pytest.param(path, marks=pytest.mark.slow if path.stem in IN_CI else pytest.mark.exhaustive)
    for path in sorted(EXAMPLES.glob("*.py"))
]


@pytest.mark.parametrize("example", MARKED, ids=lambda path: path.stem)
def test_an_example_runs_both_ways(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(example), "--quick"])
    runpy.run_path(str(example), run_name="__main__")
    printed = capsys.readouterr().out
    result = re.search(r"^plain ([\d.]+), hookline ([\d.]+)$", printed, re.MULTILINE)
    assert result
    plain, ours = float(result[1]), float(result[2])
    # Both train on the same data in different orders.
    assert abs(plain - ours) < 0.5 * max(plain, ours) + 0.05
    assert (tmp_path / "runs" / example.stem / "report.html").exists()


def test_every_example_is_in_the_table():
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES.glob("*.py") if f"({path.name})" not in text] == []


@pytest.fixture
def installed(tmp_path):
    """Return a directory with the package and the metadata that pip would install."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    site = tmp_path / "site"
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    lines = []
    for group, names in project["entry-points"].items():
        lines.append(f"[{group}]")
        lines += [f"{name} = {value}" for name, value in names.items()]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    (site / "hookline_thermometer").symlink_to(PACKAGE / "hookline_thermometer")
    return site


BOTH_COMMANDS = """
import sys
from hookline.cli.main import main

assert main(["hooks", "ThermometerHook"]) == 0
assert main(["train", sys.argv[1], "training.epochs=1"]) == 0
"""


@pytest.mark.slow
def test_a_config_names_the_hook_of_an_installed_package(installed, tmp_path):
    paths = os.pathsep.join([str(EXAMPLES.parent), str(installed)])
    done = subprocess.run(
        [sys.executable, "-c", BOTH_COMMANDS, str(PACKAGE / "train.yaml")],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "highest" in done.stdout
    assert (tmp_path / "runs" / "thermometer" / "last.pth").exists()
