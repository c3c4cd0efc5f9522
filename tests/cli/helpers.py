"""A small config, and the command as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
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


def command(*arguments: str, start: Sequence[str] = ("-m", "hookline"), **options: Any) -> subprocess.Popen[str]:
    """`hookline ARGUMENTS` as a process, with pipes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, *start, *arguments], env=environment, **{**pipes, **options})


def wait_for(process: subprocess.Popen[str], text: str) -> None:
    """Read the standard output of a process until a line has the text in it."""
    assert process.stdout is not None
    seen = []
    for line in process.stdout:
        seen.append(line)
        if text in line:
            return
    raise AssertionError(f"{text!r} never came: {''.join(seen)}{process.stderr.read() if process.stderr else ''}")
