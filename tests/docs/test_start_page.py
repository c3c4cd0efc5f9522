"""The start page, followed as a reader does: train, kill, resume, report."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.docs.pages import BLOCK, DOCS, ROOT, read
from tests.waiting import LIMIT_S


def block(language: str, words: str) -> str:
    """Return the first block of the page in a language that contains some words."""
    for each, text in BLOCK.findall(read(DOCS / "index.md")):
        if each == language and words in text:
            return text
    raise LookupError(f"no {language} block with {words!r}")


SCRIPT = block("python", "# file: train.py")
KILL = block("text", "kill -9")
EPOCHS = int(re.findall(r"^python train\.py (\d+)$", KILL, re.MULTILINE)[-1])


def reader(folder: Path, commands: str) -> subprocess.Popen[str]:
    """Start a shell in an empty folder with the page's train.py; its `python` is this one."""
    folder.mkdir()
    (folder / "train.py").write_text(SCRIPT, encoding="utf-8")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        ["bash", "-c", commands],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def output_of(process: subprocess.Popen[str]) -> str:
    """Wait for a shell that must succeed, and return its output. Kill it if it hangs."""
    try:
        output, _ = process.communicate(timeout=LIMIT_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, output
    return output


@pytest.mark.slow
def test_the_killed_run_of_the_page_ends_like_an_uninterrupted_one(tmp_path: Path) -> None:
    killed = reader(tmp_path / "killed", f"python train.py\n{KILL}")
    whole = reader(tmp_path / "whole", f"python train.py {EPOCHS}")
    output = output_of(killed)
    output_of(whole)
    resumed = [int(epoch) for epoch in re.findall(r"resumed at epoch (\d+)", output)]
    assert 4 < resumed[-1] <= EPOCHS, output  # epoch 4 follows the page's first command
    assert f"reached max_epochs={EPOCHS}" in output

    ours = torch.load(tmp_path / "killed/runs/rings/last.pth", weights_only=True)
    theirs = torch.load(tmp_path / "whole/runs/rings/last.pth", weights_only=True)
    for name, weights in theirs["state_dict"].items():
        assert torch.equal(ours["state_dict"][name], weights), name
    assert ours["hooks"]["LogProgress"] == theirs["hooks"]["LogProgress"]
    report = (tmp_path / "killed/runs/rings/report.html").read_text(encoding="utf-8")
    assert "LogProgress" in report
    assert "best_accuracy.pth" in report
