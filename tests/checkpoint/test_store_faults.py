"""Faults of every durable operation of the store."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.names import LEDGER_TEMPORARIES, is_temporary
from hookline.checkpoint.store import CheckpointStore
from tests.checkpoint.helpers import content, files, listed

Run = Callable[[CheckpointStore], Iterator[int]]

OPERATIONS = (
    "create",
    "write",
    "sync",
    "close",
    "rename",
    "link",
    "unlink",
    "make_directory",
    "create_directory",
    "remove_directory",
    "sync_directory",
    "free_bytes",
)
FAULTS = ("kill", "torn", "eio", "full once", "full", "short")


class Killed(BaseException):
    """Stands for a kill: no later operation of the process has an effect."""


class Faulty(FileSystem):
    """A file system on which operation number `at` fails; with -1 it only counts."""

    def __init__(self, at: int = -1, fault: str = "") -> None:
        self.at = at
        self.fault = fault
        self.history: list[str] = []
        self.dead = False

    def sync(self, descriptor: int) -> None: ...

    def sync_directory(self, directory: Path) -> None: ...

    def __getattribute__(self, name: str) -> Any:
        attribute = super().__getattribute__(name)
        if name not in OPERATIONS:
            return attribute
        return lambda *arguments: self.perform(name, attribute, arguments)

    def perform(self, name: str, operation: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        if self.dead:
            raise Killed
        number = len(self.history)
        self.history.append(name)
        hit = number == self.at
        if (
            self.fault == "full"
            and number >= self.at >= 0
            and name in ("create", "write", "sync", "link")
        ):
            raise OSError(errno.ENOSPC, "No space left on device")
        if not hit:
            return operation(*arguments)
        if name == "write" and self.fault in ("torn", "short"):
            done = operation(arguments[0], arguments[1][: (len(arguments[1]) + 1) // 2])
            if self.fault == "short":
                return done
        elif self.fault == "torn" or name == "close":  # the kill comes right after the operation
            operation(*arguments)
        if self.fault in ("kill", "torn"):
            self.dead = True
            raise Killed
        if self.fault == "eio":
            raise OSError(errno.EIO, "Input/output error")
        raise OSError(errno.ENOSPC, "No space left on device")


def retention(store: CheckpointStore) -> Iterator[int]:
    """Keep the newest checkpoint, `last` and `best`, and overwrite one name at the end.

    Yields the step of each save that was reported as successful.
    """
    store.prepare()
    for step in (1, 2, 3):
        links = ["last.pth", "best.pth"] if step == 2 else ["last.pth"]
        yield from attempt(store, save, f"epoch_{step}.pth", step, links)
        yield from attempt(store, CheckpointStore.remove, f"epoch_{step - 1}.pth")
    yield from attempt(store, save, "best.pth", 4, [])


def overwriting(store: CheckpointStore) -> Iterator[int]:
    """Save under one name again and again."""
    store.prepare()
    for step in (1, 2, 3):
        yield from attempt(store, save, "only.pth", step, [])


def sharded(store: CheckpointStore) -> Iterator[int]:
    """Save sharded checkpoints. After a successful save, remove the previous one."""
    store.prepare()
    for step in (1, 2, 3):
        saved = list(attempt(store, save_shards, f"epoch_{step}.pth", step))
        yield from saved
        if saved:
            yield from attempt(store, CheckpointStore.remove, f"epoch_{step - 1}.pth")


def save(store: CheckpointStore, name: str, step: int, links: list[str]) -> int:
    return store.save(content(step), name, links=links, step=step, epoch=step).step


def save_shards(store: CheckpointStore, name: str, step: int) -> int:
    directory = store.claim_shards(step)
    try:
        (store.directory / directory / "__0_0.distcp").write_bytes(bytes(100))
        parts = store.describe_shards(directory)
        checkpoint = {**content(step), "shards": directory}
        return store.save(checkpoint, name, step=step, epoch=step, parts=parts).step
    except (CheckpointError, OSError) as error:
        store.abandon_shards(directory)
        if isinstance(error, OSError):
            raise CheckpointError(str(error), file=str(store.directory)) from error
        raise


def attempt(store: CheckpointStore, action: Callable[..., Any], *arguments: Any) -> Iterator[int]:
    """Yield the step of a successful save. After a failed one the run continues."""
    try:
        done = action(store, *arguments)
        if isinstance(done, int):
            yield done
    except CheckpointError as error:
        check_error(store, error)


def check_error(store: CheckpointStore, error: CheckpointError) -> None:
    """Check that an error names a file and has one line, and that no temporary file is left."""
    assert "\n" not in str(error)
    assert str(error.file).startswith(str(store.directory))
    fs = store._fs
    assert isinstance(fs, Faulty)
    if fs.history[fs.at] != "unlink":
        found = os.listdir(store.directory)
        assert not [name for name in found if name in LEDGER_TEMPORARIES or is_temporary(name)]


def operations(run: Run, directory: Path) -> list[str]:
    fs = Faulty()
    assert list(run(CheckpointStore(directory, fs)))
    return fs.history


def check(run: Run, directory: Path, fs: Faulty) -> None:
    """Run until the fault ends it; check that the next start finds all reported checkpoints."""
    reported = 0
    store = CheckpointStore(directory, fs)
    try:
        for step in run(store):
            reported = step
            assert newest_step(directory) >= reported
    except (Killed, CheckpointError):  # the latter from prepare, without which there is no run
        pass
    store.unlock()
    before = newest_step(directory)
    assert before >= reported
    after = CheckpointStore(directory, Faulty())
    after.prepare()
    assert newest_step(directory) == before
    for name in listed(after):
        after.verify(name)
    used = {part.directory for entry in after.entries() for part in entry.parts}
    assert files(directory) == listed(after) | used
    assert save(after, "epoch_9.pth", 9, ["last.pth"]) == 9
    assert after.load("last.pth")["meta"]["step"] == 9
    after.unlock()


def newest_step(directory: Path) -> int:
    """Return the step of the newest intact checkpoint; 0 if there is none."""
    store = CheckpointStore(directory)
    found = store.latest()
    if found is None:
        return 0
    assert store.load(found)["meta"]["step"] == found.step
    return found.step


def sweep(run: Run, directory: Path, fault: str, stride: int) -> int:
    """Make every operation fail in turn, but of the many similar writes one in `stride`."""
    cases = 0
    writes = 0
    for at, name in enumerate(operations(run, directory / "counted")):
        writes += name == "write"
        if (fault == "short" and name != "write") or (name == "write" and writes % stride):
            continue
        check(run, directory / str(at), Faulty(at, fault))
        cases += 1
    return cases


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        (retention, "kill"),
        (retention, "eio"),
        (overwriting, "torn"),
        (overwriting, "full"),
        (overwriting, "short"),
        (sharded, "kill"),
        (sharded, "eio"),
    ],
)
def test_a_fault_in_any_kind_of_operation_loses_no_reported_checkpoint(
    tmp_path: Path, run: Run, fault: str
) -> None:
    assert sweep(run, tmp_path, fault, stride=9) > 10


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("run", [retention, overwriting, sharded])
def test_a_fault_in_every_single_operation_loses_no_reported_checkpoint(
    tmp_path: Path, run: Run, fault: str
) -> None:
    every_write = bool(os.environ.get("HOOKLINE_EVERY_WRITE"))
    assert sweep(run, tmp_path, fault, stride=1 if every_write else 7) > (
        100 if every_write else 12
    )
