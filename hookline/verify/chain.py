"""A run in pieces: started, killed, resumed, killed again, until it is through."""

from __future__ import annotations

import math
import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hookline.checkpoint.manifest import read_ledger
from hookline.verify.trace import is_training

Launch = Callable[[Path], int]  # starts a run that resumes by itself in a work directory; the number of its process


@dataclass
class Chain:
    """How a run is to be killed: within `span` seconds of training; `in_save` and `early` are the parts of the kills that are
    aimed at a save and at the time before training, while a process starts and resumes.

    All of them come after a first checkpoint: a run that just begins anew proves nothing.
    """

    kills: int
    span: float
    seed: int = 0
    in_save: float = 0.4
    early: float = 0.1
    limit: float = 600.0  # seconds that one piece may take


@dataclass
class ChainResult:
    """What happened to a chain of runs."""

    kills: int = 0
    kills_in_save: int = 0
    failures: list[str] = field(default_factory=list)  # of pieces that ended by themselves, and not well


def run_chain(launch: Launch, work_dir: Path, chain: Chain) -> ChainResult:
    """Start and kill runs until enough were killed, then let the last one finish."""
    rng, result = random.Random(chain.seed), ChainResult()
    while result.kills < chain.kills:
        process = launch(work_dir)
        aimed = rng.random() < chain.in_save
        code, in_save = _watch(process, work_dir, rng, chain, aimed)
        if code is not None:
            if code != 0:
                result.failures.append(f"piece {result.kills + 1} ended by itself with code {code}")
            break  # it came through before its time; further kills would hit nothing
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        if not has_saved(work_dir):
            result.failures.append(f"there was no checkpoint after {chain.limit:.0f} s")
            return result
        result.kills += 1
        result.kills_in_save += in_save
    code = _wait(launch(work_dir), chain.limit)
    if code != 0:
        result.failures.append(f"the last piece ended with code {code}")
    return result


def _watch(process: int, work_dir: Path, rng: random.Random, chain: Chain, aimed: bool) -> tuple[int | None, bool]:
    """Wait for the moment to kill: the exit code if the process ended before, and whether it is in the middle of a save."""
    started = time.monotonic()
    saved = has_saved(work_dir)
    begun, lifetime = rng.random() < chain.early and saved, rng.uniform(0, chain.span)
    deadline = started + lifetime if begun else math.inf
    while time.monotonic() < started + chain.limit:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), False
        saved = saved or has_saved(work_dir)
        if not begun and saved and is_training(work_dir, process):
            begun, deadline = True, time.monotonic() + lifetime
        saving = is_saving(work_dir)
        if time.monotonic() >= deadline and (saving or not aimed):
            if saving:
                time.sleep(rng.uniform(0, 0.02))
            return None, is_saving(work_dir)
        time.sleep(0.0005 if aimed else 0.002)
    return None, False


def has_saved(work_dir: Path) -> bool:
    """Whether there is a checkpoint to resume from."""
    return any(entry.resumable for entry in read_ledger(work_dir).entries)


def is_saving(work_dir: Path) -> bool:
    """Whether a checkpoint is being written: its temporary file is there."""
    try:
        return any(entry.name.startswith(".hookline-") and entry.name.endswith(".tmp") for entry in os.scandir(work_dir))
    except FileNotFoundError:
        return False


def _wait(process: int, limit: float) -> int:
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return -signal.SIGKILL
