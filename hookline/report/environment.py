"""The environment of a run: the machine, the versions, and the state of the user's repository."""

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

GIT = (
    "git",
    "-c",
    "core.fsmonitor=false",  # a program of the repository's config, which must not run
    "status",
    "--porcelain=v2",
    "--branch",
    "--untracked-files=no",
)
GIT_TIMEOUT_S = 5.0
MAX_FILES = 20
START_TOLERANCE_S = 2.0


def environment(device: torch.device) -> dict[str, Any]:
    """Return the machine, the process and the versions of a run."""
    gpus = []
    if device.type == "cuda":
        gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "host": platform.node(),
        "pid": os.getpid(),
        "process_started": psutil.Process().create_time(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "device": str(device),
        "gpus": gpus,
        "versions": {
            "hookline": __version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
            "numpy": numpy.__version__,
        },
    }


def is_alive(about: dict[str, Any]) -> bool | None:
    """Return whether the process of an `environment` is running; None if it is on another host."""
    pid = about.get("pid")
    started = about.get("process_started")
    if about.get("host") != platform.node():
        return None
    if not isinstance(pid, int) or not isinstance(started, (int, float)):
        return None
    try:
        process = psutil.Process(pid)
        is_same = abs(process.create_time() - started) < START_TOLERANCE_S
        return is_same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def git_state(folder: Path) -> dict[str, Any] | None:
    """Return the commit, branch and changed files of the repository around a folder.

    None if there is no repository, or if git is missing or takes too long.
    """
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        result = subprocess.run(
            GIT,
            cwd=folder,
            env=quiet,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if result.returncode != 0:
        return None
    return _parse_status(result.stdout.decode(errors="replace").splitlines())


def _parse_status(lines: list[str]) -> dict[str, Any]:
    """Return the parts of `git status --porcelain=v2 --branch` that the report shows."""
    headers = {}
    changed = []
    for line in lines:
        if line.startswith("# "):
            key, _, value = line[2:].partition(" ")
            headers[key] = value
        elif line[:2] in ("1 ", "2 ", "u "):
            changed.append(line.split(" ", 8)[-1])
    return {
        "commit": headers.get("branch.oid", ""),
        "branch": headers.get("branch.head", ""),
        "changed": len(changed),
        "files": changed[:MAX_FILES],
        "time": time.time(),
    }


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
