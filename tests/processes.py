"""Processes that tests start."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any

# Of the current test. Those that are still running at its end are killed.
_started: list[subprocess.Popen[str]] = []


def start(arguments: Sequence[str], **options: Any) -> subprocess.Popen[str]:
    """Start a process that ends with the current test at the latest."""
    process: subprocess.Popen[str] = subprocess.Popen(arguments, **options)
    _started.append(process)
    return process


def kill_started() -> None:
    """Kill the processes that are still running."""
    for process in _started:
        if process.poll() is None:
            process.kill()
            process.wait()
    _started.clear()
