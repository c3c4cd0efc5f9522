"""Unmodified code on an installed MMCV 1.x, of which only the training parts are replaced.

MMCV is looked for in the interpreter that HOOKLINE_MMCV_PYTHON names. `make test-compat` installs it in a separate environment,
because it depends on OpenCV.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.compat.mmcv_jobs import jobs
from tests.compat.test_mmcv_distributed import check_two_processes
from tests.compat.test_mmcv_reference import REFERENCE, same
from tests.waiting import LIMIT_S

HERE = Path(__file__).parent
PYTHON = os.environ.get("HOOKLINE_MMCV_PYTHON")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PYTHON is None, reason="needs mmcv==1.7.2: run make test-compat"),
]


def run_as_mmcv(script: str, *arguments: str) -> str:
    command = [str(PYTHON), "-m", "hookline", "run-as", "mmcv", str(HERE / script), *arguments]
    paths = [str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_parts_of_mmcv_and_ours_work_together(tmp_path: Path) -> None:
    output = run_as_mmcv("mmcv_overlay_job.py", str(tmp_path / "run"))
    (line,) = [line for line in output.splitlines() if line.startswith("JOB ")]
    found = json.loads(line.removeprefix("JOB "))
    assert found["modules"] == {
        "Config": "mmcv",
        "BaseModule": "mmcv",
        "PaviLoggerHook": "mmcv",
        "EpochBasedRunner": "hookline",
        "Hook": "hookline",
    }
    assert found["version"].startswith("1.")
    assert found["groups"] == 2
    assert found["calls"] == 6
    assert found["files"] == ["memory://runs/run/epoch_2.pth", "memory://runs/run/epoch_3.pth"]
    assert found["equal"]
    assert not found["torchvision"]


def test_jobs_go_as_under_mmcv_alone(tmp_path: Path) -> None:
    run_as_mmcv("mmcv_jobs.py", str(tmp_path / "results.json"))
    results = json.loads((tmp_path / "results.json").read_text())
    assert results.keys() == REFERENCE.keys()
    for name in jobs():
        for key, value in REFERENCE[name].items():
            assert same(results[name][key], value), (name, key, results[name][key], value)


def test_two_processes_with_wrappers_of_mmcv_resume_bit_for_bit(tmp_path: Path) -> None:
    check_two_processes(str(PYTHON), tmp_path)
