"""What a run runs on: the machine, the versions, and the state of the user's repository."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy
import psutil
import torch

from hookline.version import __version__

GIT = ("git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch", "--untracked-files=no")
GIT_LIMIT = 5.0  # seconds
MOST_FILES = 20


def environment(device: torch.device) -> dict[str, Any]:
    """The machine and the versions that a run has."""
    return {
        "host": platform.node(),
        "pid": os.getpid(),
        "process_started": psutil.Process().create_time(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "device": str(device),
        "gpus": [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())] if device.type == "cuda" else [],
        "versions": {
            "hookline": __version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
            "numpy": numpy.__version__,
        },
    }


def is_alive(about: dict[str, Any]) -> bool | None:
    """Whether the process of an `environment` is still there; None where that cannot be known from here."""
    pid, started = about.get("pid"), about.get("process_started")
    if about.get("host") != platform.node() or not isinstance(pid, int) or not isinstance(started, (int, float)):
        return None
    try:
        process = psutil.Process(pid)
        return abs(process.create_time() - started) < 2 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit, branch and changed files of the repository around a folder; None if there is none, or git takes too long."""
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        result = subprocess.run(GIT, cwd=folder, env=quiet, stdin=subprocess.DEVNULL, capture_output=True, timeout=GIT_LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if result.returncode != 0:
        return None
    lines = result.stdout.decode(errors="replace").splitlines()
    about = {key: value for line in lines if line.startswith("# ") for key, _, value in [line[2:].partition(" ")]}
    changed = [line.split(" ", 8)[-1] for line in lines if line[:2] in ("1 ", "2 ", "u ")]
    return {
        "commit": about.get("branch.oid", ""),
        "branch": about.get("branch.head", ""),
        "changed": len(changed),
        "files": changed[:MOST_FILES],
        "time": time.time(),
    }


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), platform.machine())
    except OSError:
        return platform.processor() or platform.machine()
