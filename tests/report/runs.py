"""Real runs to make reports of."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEMO = str(ROOT / "configs/digits.yaml")
PICTURES = ["hooks.visualization.interval=10", "hooks.gradient_flow.frequency=10", "hooks.feature_map=null"]


def start(folder: Path, *overrides: str, config: str = DEMO) -> subprocess.Popen[str]:
    """The demo as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    arguments = [sys.executable, "-m", "hookline", "train", config, "--work-dir", str(folder), "model.width=4", *overrides]
    return subprocess.Popen(arguments, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def demo(folder: Path, *overrides: str) -> Path:
    """A demo that has run to its end."""
    process = start(folder, "training.epochs=3", *PICTURES, *overrides)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return folder


def crashed_and_resumed(folder: Path) -> Path:
    """A demo that was killed on its way, and went on."""
    process = start(folder, "training.epochs=400", "hooks.visualization=null", "hooks.feature_map=null")
    wait_until(lambda: (folder / "timeline.jsonl").exists() and (folder / "timeline.jsonl").read_text().count('"save"') > 2)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    epochs = (folder / "timeline.jsonl").read_text().count('"epoch", ') + 5
    process = start(folder, f"training.epochs={epochs}", "hooks.visualization=null", "hooks.feature_map=null", "resume=auto")
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return folder


def wait_until(condition, seconds: float = 90.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)
