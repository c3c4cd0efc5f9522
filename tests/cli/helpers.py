"""A small config, the error of a command, and the command as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hookline.cli.commands import cli
from hookline.errors import HooklineError
from tests import processes

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
    """Write a config that trains in a fraction of a second, and return its path.

    Args:
        folder: The directory of the config and of its run.
        more: Lines for the end of the config, which continue the list of hooks.
    """
    path = folder / "config.yaml"
    path.write_text(CONFIG.format(folder=folder) + more, encoding="utf-8")
    return str(path)


def error_of(*arguments: str) -> HooklineError:
    """Run a command that must fail, and return its error with all fields."""
    with (
        pytest.raises(HooklineError) as caught,
        cli.make_context("hookline", list(arguments)) as context,
    ):
        cli.invoke(context)
    return caught.value


def command(
    *arguments: str, start: Sequence[str] = ("-m", "hookline"), **options: Any
) -> subprocess.Popen[str]:
    """Start `hookline ARGUMENTS` as a process with pipes."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    settings = {**pipes, "env": environment, **options}
    return processes.start([sys.executable, *start, *arguments], **settings)


def wait_for(process: subprocess.Popen[str], text: str, *, errors: bool = False) -> None:
    """Read the standard output (or error) of a process until a line contains a text."""
    stream = process.stderr if errors else process.stdout
    assert stream is not None
    seen = []
    for line in stream:
        seen.append(line)
        if text in line:
            return
    rest = process.stderr.read() if process.stderr else ""
    raise AssertionError(f"no {text!r} in: {''.join(seen)}{rest}")
