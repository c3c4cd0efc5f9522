"""The lock of a checkpoint directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hookline
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.lock import DirectoryLock
from hookline.checkpoint.store import CheckpointStore

HOLDER = """
import os, signal, sys
from hookline.checkpoint.store import CheckpointStore
store = CheckpointStore(sys.argv[1])
store.lock()
is_worker = len(sys.argv) > 2 and os.fork() == 0
if is_worker or len(sys.argv) == 2:
    print("locked", flush=True)
signal.pause()
"""


def holder(directory: Path, *extra: str) -> subprocess.Popen[str]:
    """Start a process that holds the lock; if `extra` is given, wait for its forked worker."""
    root = Path(hookline.__file__).parents[1]
    command = [sys.executable, "-c", HOLDER, str(directory), *extra]
    process = subprocess.Popen(
        command, cwd=root, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "locked\n"
    return process


def kill_all(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_a_second_process_is_rejected_with_the_owner_of_the_lock(tmp_path: Path) -> None:
    process = holder(tmp_path)
    try:
        with pytest.raises(CheckpointError) as caught:
            CheckpointStore(tmp_path).lock()
    finally:
        kill_all(process)
    assert caught.value.file == str(tmp_path)
    assert f"process {process.pid} on " in str(caught.value)
    CheckpointStore(tmp_path).lock()


def test_a_forked_worker_does_not_keep_the_lock_of_a_killed_main_process(tmp_path: Path) -> None:
    process = holder(tmp_path, "with a worker")
    try:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        CheckpointStore(tmp_path).lock()
    finally:
        kill_all(process)


def test_two_stores_of_one_process_exclude_each_other(tmp_path: Path) -> None:
    first = CheckpointStore(tmp_path)
    second = CheckpointStore(tmp_path)
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


def test_a_link_in_place_of_the_lock_file_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / ".hookline.lock").symlink_to(victim)
    with pytest.raises(CheckpointError) as caught:
        CheckpointStore(directory).prepare()
    assert caught.value.file == str(directory)
    assert victim.read_text() == "mine"
