"""A small config, and the command as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
CONFIG = """\
work_dir: {folder}/run
seed: 1
device: cpu
model: {{type: cnn, width: 4}}
dataset: {{type: digits}}
loader: {{batch_size: 256}}
training: {{epochs: 1}}
hooks:
  - {{type: LoggerHook, interval: 2}}
"""


def write_config(folder: Path, more: str = "") -> str:
    """The path of a config whose training takes a fraction of a second; `more` goes to the end of its hooks."""
    path = folder / "config.yaml"
    path.write_text(CONFIG.format(folder=folder) + more, encoding="utf-8")
    return str(path)


STARTED: list[subprocess.Popen[str]] = []  # by the test that runs now; those that outlive it are killed


def command(*arguments: str, start: Sequence[str] = ("-m", "hookline"), **options: Any) -> subprocess.Popen[str]:
    """`hookline ARGUMENTS` as a process, with pipes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, *start, *arguments], env=environment, **{**pipes, **options})
    STARTED.append(process)
    return process


def wait_for(process: subprocess.Popen[str], text: str, *, errors: bool = False) -> None:
    """Read the standard output (or the errors) of a process until a line has the text in it."""
    stream = process.stderr if errors else process.stdout
    assert stream is not None
    seen, deadline = [], time.monotonic() + 120
    for line in stream:
        seen.append(line)
        assert time.monotonic() < deadline, f"{text!r} did not come in time: {''.join(seen[-20:])}"
        if text in line:
            return
    raise AssertionError(f"{text!r} never came: {''.join(seen)}{process.stderr.read() if process.stderr else ''}")
