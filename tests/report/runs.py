"""Real runs for reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import LIMIT_S, wait_until

ROOT = Path(__file__).parents[2]
ENDLESS = 1_000_000  # epochs; the run continues until it is stopped
DEMO = str(ROOT / "hookline/configs/digits.yaml")
PICTURES = [
    "hooks.visualization.interval=10",
    "hooks.gradient_flow.frequency=10",
    "hooks.feature_map=null",
]
NO_PICTURES = ["hooks.visualization=null", "hooks.feature_map=null"]


def start(folder: Path, *overrides: str, config: str = DEMO) -> subprocess.Popen[str]:
    """Start the demo as a process."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    command = [sys.executable, "-m", "hookline", "train", config, "--work-dir", str(folder)]
    return subprocess.Popen(
        [*command, "model.width=4", *overrides],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for a process that must succeed."""
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, errors


def demo(folder: Path, *overrides: str) -> Path:
    """Run the demo to its end."""
    finish(start(folder, "training.epochs=3", *PICTURES, *overrides))
    return folder


def crashed_and_resumed(folder: Path) -> Path:
    """Kill the demo in the middle, and resume it."""
    process = start(folder, f"training.epochs={ENDLESS}", *NO_PICTURES)
    wait_until(lambda: count(folder, "save") > 2, "the third save")
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=LIMIT_S)
    epochs = count(folder, "epoch") + 5
    finish(start(folder, f"training.epochs={epochs}", *NO_PICTURES, "resume=auto"))
    return folder


def timeline(folder: Path) -> list[dict[str, Any]]:
    """Return the complete rows of a timeline; none if there is no file yet."""
    path = folder / "timeline.jsonl"
    if not path.exists():
        return []
    complete, _, _ = path.read_text().rpartition("\n")
    return [json.loads(line) for line in complete.splitlines()]


def count(folder: Path, what: str) -> int:
    """Return the number of rows of a kind in a timeline."""
    return sum(row["what"] == what for row in timeline(folder))
