"""The examples run, each as a user would start it."""

from __future__ import annotations

import os
import re
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


def run(directory: Path, *command: str, path: Path | None = None) -> str:
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(EXAMPLES.parent), *([str(path)] if path else [])])}
    done = subprocess.run([sys.executable, *command], cwd=directory, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


IN_CI = ("classification", "gan")  # the others take longer, and are alike
MARKED = [
    pytest.param(path, marks=pytest.mark.slow if path.stem in IN_CI else pytest.mark.exhaustive) for path in sorted(EXAMPLES.glob("*.py"))
]


@pytest.mark.parametrize("example", MARKED, ids=lambda path: path.stem)
def test_an_example_runs_both_ways(example, tmp_path):
    result = re.search(r"^plain ([\d.]+), hookline ([\d.]+)$", run(tmp_path, str(example), "--quick"), re.MULTILINE)
    assert result
    plain, ours = float(result[1]), float(result[2])
    assert abs(plain - ours) < 0.5 * max(plain, ours) + 0.05  # the same work in another order of data
    assert (tmp_path / "runs" / example.stem / "report.html").exists()


def test_every_example_is_in_the_table():
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES.glob("*.py") if f"({path.name})" not in text] == []


@pytest.fixture
def installed(tmp_path):
    """The package with the metadata that an installation would write."""
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    site = tmp_path / "site"
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in project["entry-points"].items())
    (info / "entry_points.txt").write_text("\n".join(groups))
    (site / "hookline_thermometer").symlink_to(PACKAGE / "hookline_thermometer")
    return site


@pytest.mark.slow
def test_a_config_names_the_hook_of_an_installed_package(installed, tmp_path):
    assert "highest" in run(tmp_path, "-m", "hookline", "hooks", "ThermometerHook", path=installed)
    run(tmp_path, "-m", "hookline", "train", str(PACKAGE / "train.yaml"), "training.epochs=1", path=installed)
    assert (tmp_path / "runs" / "thermometer" / "last.pth").exists()
