"""Run a training in pieces: start it, kill it and resume it until it is complete."""

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
from hookline.checkpoint.names import is_temporary
from hookline.verify.trace import is_training, read_start

# Starts a run that resumes from its work directory; returns the process id.
Launch = Callable[[Path], int]

POLL_S = 0.002
POLL_FOR_SAVE_S = 0.0005  # A save may take only a few milliseconds.
MAX_DELAY_IN_SAVE_S = 0.02  # from the beginning of a save to the kill


@dataclass
class Chain:
    """The times at which the pieces of a run are killed, always after the first checkpoint.

    A run that was killed before its first checkpoint starts from the beginning and proves nothing.

    Args:
        kills: The number of kills.
        span: The seconds of training within which a piece is killed.
        seed: The seed of the random times.
        in_save: The share of kills inside a save.
        early: The share of kills while a process starts and resumes, before it trains.
        limit: The seconds that one piece may take.
        clock: Returns the seconds of a monotonic clock.
        sleep: Waits a number of seconds between two checks of a piece.
    """

    kills: int
    span: float
    seed: int = 0
    in_save: float = 0.5
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


@dataclass
class KillTime:
    """The time at which to kill a piece.

    Args:
        delay: Seconds after the beginning of the training.
        is_early: Whether these seconds count from the start of the process.
        delay_in_save: Seconds after the beginning of a save; None does not wait for one.
    """

    delay: float
    is_early: bool
    delay_in_save: float | None

    @classmethod
    def draw(cls, chain: Chain, rng: random.Random, result: ChainResult) -> KillTime:
        """Return a random time. Those inside a save are spread evenly over the kills."""
        delay = rng.uniform(0, chain.span)
        is_early = rng.random() < chain.early
        delay_in_save = rng.uniform(0, MAX_DELAY_IN_SAVE_S)
        if result.kills_in_save + 1 <= chain.in_save * (result.kills + 1):
            return cls(delay, False, delay_in_save)
        return cls(delay, is_early, None)


def run_chain(launch: Launch, work_dir: Path, chain: Chain) -> ChainResult:
    """Start and kill runs until there were enough kills, then let the last one finish."""
    rng = random.Random(chain.seed)
    result = ChainResult()
    while result.kills < chain.kills:
        process = launch(work_dir)
        kill = KillTime.draw(chain, rng, result)
        code = _wait_for_kill(process, work_dir, chain, kill)
        if code is not None:
            if code != 0:
                result.failures.append(f"piece {result.kills + 1} ended with exit code {code}")
            break  # The run is complete: another kill would hit nothing.
        # A process that does not train yet has not removed the files of the one before it.
        in_save = is_training(work_dir, process) and is_saving(work_dir)
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        if not has_saved(work_dir):
            result.failures.append(f"no checkpoint within {chain.limit:.0f} s")
            return result
        result.kills += 1
        result.kills_in_save += in_save
    code = _wait_for_end(launch(work_dir), chain)
    start = read_start(work_dir)
    if code != 0:
        result.failures.append(f"the last piece ended with exit code {code}")
    elif result.kills and (start is None or not start.iteration):
        result.failures.append("the last piece did not resume from the checkpoint: it started over")
    return result


def has_saved(work_dir: Path) -> bool:
    """Return whether there is a checkpoint to resume from."""
    return any(entry.resumable for entry in read_ledger(work_dir).entries)


def is_saving(work_dir: Path) -> bool:
    """Return whether a checkpoint is being written: its temporary file exists."""
    token = read_ledger(work_dir).token
    if not token:
        return False
    return any(is_temporary(name, token) for name in os.listdir(work_dir))


def _wait_for_kill(process: int, work_dir: Path, chain: Chain, kill: KillTime) -> int | None:
    """Wait for the time to kill a piece; return its exit code if it ended before, else None."""
    started = chain.clock()
    saved = has_saved(work_dir)
    deadline = math.inf
    if saved and kill.is_early:
        deadline = started + kill.delay
    while chain.clock() < started + chain.limit:
        code = _exit_code(process)
        if code is not None:
            return code
        saved = saved or has_saved(work_dir)
        if deadline == math.inf and saved and is_training(work_dir, process):
            deadline = chain.clock() + kill.delay
        if chain.clock() >= deadline:
            if kill.delay_in_save is None:
                return None
            if is_saving(work_dir) and pause_in_save(process, work_dir, chain, kill):
                return None
        chain.sleep(POLL_S if kill.delay_in_save is None else POLL_FOR_SAVE_S)
    return None


def pause_in_save(process: int, work_dir: Path, chain: Chain, kill: KillTime) -> bool:
    """Pause a process during a save, and return whether that succeeded.

    If the save was faster than the delay, the process continues.
    """
    assert kill.delay_in_save is not None
    chain.sleep(kill.delay_in_save)
    os.kill(process, signal.SIGSTOP)
    # Leave an exit code where `_exit_code` finds it.
    state = os.waitid(os.P_PID, process, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
    assert state is not None
    if state.si_code != os.CLD_STOPPED:
        return False
    if is_saving(work_dir):
        return True
    os.kill(process, signal.SIGCONT)
    kill.delay_in_save /= 2
    return False


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
