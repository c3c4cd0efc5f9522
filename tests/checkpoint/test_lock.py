from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hookline
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.lock import DirectoryLock
from hookline.checkpoint.store import CheckpointStore

HOLDER = """
import os, sys, time
from hookline.checkpoint.store import CheckpointStore
store = CheckpointStore(sys.argv[1])
store.lock()
worker = os.fork() if len(sys.argv) > 2 else None
if worker != 0:
    print("locked", flush=True)
time.sleep(60)
"""


def holder(directory: Path, *extra: str) -> subprocess.Popen[str]:
    root = Path(hookline.__file__).parents[1]
    command = [sys.executable, "-c", HOLDER, str(directory), *extra]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def kill_all(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_second_process_is_refused_at_once_and_told_who_is_there(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        started = time.monotonic()
        with pytest.raises(CheckpointError, match=f"in use by process {process.pid} on "):
            CheckpointStore(tmp_path).lock()
        assert time.monotonic() - started < 1
    finally:
        kill_all(process)
    CheckpointStore(tmp_path).lock()


def test_a_forked_worker_does_not_keep_the_lock_of_a_main_process_that_was_killed(tmp_path: Path) -> None:
    process = holder(tmp_path, "with a worker")
    try:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        CheckpointStore(tmp_path).lock()
    finally:
        kill_all(process)


def test_two_stores_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    first, second = CheckpointStore(tmp_path), CheckpointStore(tmp_path)
    first.lock()
    first.lock()
    with pytest.raises(CheckpointError, match=f"process {os.getpid()}"):
        second.lock()
    first.unlock()
    second.lock()


def test_the_lock_ends_with_its_owner(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    lock.acquire()
    del lock
    DirectoryLock(tmp_path).acquire()


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / ".hookline.lock").symlink_to(victim)
    with pytest.raises(CheckpointError, match="cannot be used for checkpoints"):
        CheckpointStore(directory).prepare()
    assert victim.read_text() == "mine"
