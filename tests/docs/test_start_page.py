"""The start page, done as a reader does it: trained, killed, resumed and reported."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
SCRIPT = next(text for text in re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if text.startswith("# file: train.py"))
KILL = next(text for text in re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "kill -9" in text)
EPOCHS = int(re.findall(r"^python train\.py (\d+)$", KILL, re.MULTILINE)[-1])


def reader(folder: Path, commands: str) -> subprocess.Popen[str]:
    """A shell in an empty folder with the page's train.py, in which `python` is ours."""
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(["bash", "-c", commands], cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_the_run_that_the_page_kills_ends_as_one_that_nobody_killed(tmp_path: Path) -> None:
    killed, straight = reader(tmp_path / "killed", f"python train.py\n{KILL}"), reader(tmp_path / "straight", f"python train.py {EPOCHS}")
    told, _ = killed.communicate(timeout=300)
    assert killed.returncode == 0, told
    undisturbed, _ = straight.communicate(timeout=300)
    assert straight.returncode == 0, undisturbed
    *_, after_kill = (int(epoch) for epoch in re.findall(r"resumed at epoch (\d+)", told))
    assert 10 < after_kill <= EPOCHS, told
    assert f"reached max_epochs={EPOCHS}" in told

    ours, whole = (torch.load(tmp_path / name / "runs/rings/last.pth", weights_only=True) for name in ("killed", "straight"))
    for name, weights in whole["state_dict"].items():
        assert torch.equal(ours["state_dict"][name], weights), name
    assert ours["hooks"]["TellProgress"] == whole["hooks"]["TellProgress"]
    report = (tmp_path / "killed/runs/rings/report.html").read_text(encoding="utf-8")
    assert "TellProgress" in report
    assert "best_accuracy.pth" in report
