"""Run a training in pieces: start it, kill it, resume it, until it comes to its end."""

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

# Starts a run that resumes from its work directory; returns the process id.
Launch = Callable[[Path], int]

POLL_S = 0.002
POLL_FOR_SAVE_S = 0.0005  # A save may take only a few milliseconds.
MAX_DELAY_IN_SAVE_S = 0.02


@dataclass
class Chain:
    """When the pieces of a run are killed: always after the first checkpoint.

    A run that was killed before its first checkpoint starts from the beginning and proves nothing.

    Args:
        kills: The number of kills.
        span: A piece is killed within this many seconds of training.
        seed: The seed of the moments.
        in_save: The share of kills that wait for a save.
        early: The share of kills while a process starts and resumes, before it trains.
        limit: The seconds that one piece may take.
        clock: The clock for all of these times.
        sleep: Waits between two looks at a piece.
    """

    kills: int
    span: float
    seed: int = 0
    in_save: float = 0.4
    early: float = 0.1
    limit: float = 600.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep


@dataclass
class ChainResult:
    """The kills of a chain, and its failures."""

    kills: int = 0
    kills_in_save: int = 0
    failures: list[str] = field(default_factory=list)


def run_chain(launch: Launch, work_dir: Path, chain: Chain) -> ChainResult:
    """Start and kill runs until there were enough kills, then let the last one finish."""
    rng = random.Random(chain.seed)
    result = ChainResult()
    while result.kills < chain.kills:
        process = launch(work_dir)
        code = _wait_for_moment(process, work_dir, chain, rng)
        if code is not None:
            if code != 0:
                result.failures.append(f"piece {result.kills + 1} ended with exit code {code}")
            break  # The run is complete: another kill would hit nothing.
        in_save = is_saving(work_dir)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        if not has_saved(work_dir):
            result.failures.append(f"no checkpoint within {chain.limit:.0f} s")
            return result
        result.kills += 1
        result.kills_in_save += in_save
    code = _wait_for_end(launch(work_dir), chain)
    if code != 0:
        result.failures.append(f"the last piece ended with exit code {code}")
    return result


def has_saved(work_dir: Path) -> bool:
    """Return whether there is a checkpoint to resume from."""
    return any(entry.resumable for entry in read_ledger(work_dir).entries)


def is_saving(work_dir: Path) -> bool:
    """Return whether a checkpoint is being written: its temporary file exists."""
    try:
        names = os.listdir(work_dir)
    except FileNotFoundError:
        return False
    return any(name.startswith(".hookline-") and name.endswith(".tmp") for name in names)


def _wait_for_moment(process: int, work_dir: Path, chain: Chain, rng: random.Random) -> int | None:
    """Wait for the moment to kill a piece; return its exit code if it ended before, else None."""
    aims_at_save = rng.random() < chain.in_save
    may_kill_early = rng.random() < chain.early
    lifetime = rng.uniform(0, chain.span)
    started = chain.clock()
    saved = has_saved(work_dir)
    deadline = math.inf
    if saved and may_kill_early:
        deadline = started + lifetime
    while chain.clock() < started + chain.limit:
        code = _exit_code(process)
        if code is not None:
            return code
        saved = saved or has_saved(work_dir)
        if deadline == math.inf and saved and is_training(work_dir, process):
            deadline = chain.clock() + lifetime
        saving = is_saving(work_dir)
        if chain.clock() >= deadline and (saving or not aims_at_save):
            if saving:
                chain.sleep(rng.uniform(0, MAX_DELAY_IN_SAVE_S))
            return None
        chain.sleep(POLL_FOR_SAVE_S if aims_at_save else POLL_S)
    return None


def _wait_for_end(process: int, chain: Chain) -> int:
    """Return the exit code of a process; kill it at the time limit."""
    deadline = chain.clock() + chain.limit
    while chain.clock() < deadline:
        code = _exit_code(process)
        if code is not None:
            return code
        chain.sleep(POLL_S)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return -signal.SIGKILL


def _exit_code(process: int) -> int | None:
    """Return the exit code of a child process, or None while it runs."""
    done, status = os.waitpid(process, os.WNOHANG)
    if not done:
        return None
    return os.waitstatus_to_exitcode(status)
