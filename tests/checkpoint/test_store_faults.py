"""Every durable operation fails once, in every way it can."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.names import JOURNAL, LOCK, MANIFEST, is_temporary
from hookline.checkpoint.store import CheckpointStore

OPERATIONS = ("create", "write", "sync", "close", "rename", "link", "unlink", "make_directory", "sync_directory", "free_bytes")
FAULTS = ("kill", "torn", "eio", "full once", "full", "short")


class Killed(BaseException):
    """The process ends here: nothing that it still tries has an effect."""


class Faulty(FileSystem):
    """Lets the operation number `at` fail; -1 only counts."""

    def __init__(self, at: int = -1, fault: str = "") -> None:
        self.at, self.fault = at, fault
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
        if self.fault == "full" and number >= self.at >= 0 and name in ("create", "write", "sync", "link"):
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
        raise OSError(*((errno.EIO, "Input/output error") if self.fault == "eio" else (errno.ENOSPC, "No space left on device")))


def content(step: int) -> dict[str, Any]:
    return {"meta": {"step": step}, "state_dict": {"w": torch.full((20,), float(step))}}


def retention(store: CheckpointStore) -> Iterator[int]:
    """Yields the step after each save that was reported; keeps one besides last and best, and then overwrites one name."""
    store.prepare()
    for step in (1, 2, 3):
        links = ["last.pth", "best.pth"] if step == 2 else ["last.pth"]
        yield from attempt(store, lambda step=step, links=links: save(store, f"epoch_{step}.pth", step, links))
        yield from attempt(store, lambda step=step: store.remove(f"epoch_{step - 1}.pth"))
    yield from attempt(store, lambda: save(store, "best.pth", 4, []))


def overwriting(store: CheckpointStore) -> Iterator[int]:
    """One single name, again and again."""
    store.prepare()
    for step in (1, 2, 3):
        yield from attempt(store, lambda step=step: save(store, "only.pth", step, []))


def save(store: CheckpointStore, name: str, step: int, links: list[str]) -> int:
    return store.save(content(step), name, links=links, step=step, epoch=step).step


def attempt(store: CheckpointStore, action: Callable[[], object]) -> Iterator[int]:
    """A run goes on after a failed save; its error names the place and the cause, and no temporary file is left."""
    try:
        done = action()
        if isinstance(done, int):
            yield done
    except CheckpointError as error:
        check_error(store, str(error))


def check_error(store: CheckpointStore, text: str) -> None:
    assert "\n" not in text
    assert str(store.directory) in text
    assert any(cause in text for cause in ("Input/output error", "the disk is full", "No space left"))
    fs = store._fs
    assert isinstance(fs, Faulty)
    if fs.history[fs.at] != "unlink":
        assert not [name for name in os.listdir(store.directory) if is_temporary(name)]


def operations(run: Callable[[CheckpointStore], Iterator[int]], directory: Path) -> list[str]:
    fs = Faulty()
    assert list(run(CheckpointStore(directory, fs)))
    return fs.history


def check(run: Callable[[CheckpointStore], Iterator[int]], directory: Path, fs: Faulty) -> None:
    """Run until the fault ends it, and see that the next start finds everything that was reported."""
    reported = 0
    store = CheckpointStore(directory, fs)
    try:
        for step in run(store):
            reported = step
            found = CheckpointStore(directory).latest()
            assert found is not None
            assert found.step >= reported
    except (Killed, CheckpointError):  # the latter from prepare, without which there is no run
        pass
    store.unlock()
    bystander = CheckpointStore(directory).latest()
    assert reported == 0 or (bystander is not None and bystander.step >= reported)
    after = CheckpointStore(directory, Faulty())
    after.prepare()
    found = after.latest()
    assert (found is None) == (bystander is None)
    if found is not None:
        assert after.load(found)["meta"]["step"] == found.step >= reported
    for entry in after.entries():
        for name in entry.names:
            after.verify(name)
    known = {name for entry in after.entries() for name in entry.names}
    assert set(os.listdir(directory)) - {MANIFEST, JOURNAL, LOCK} == known
    assert save(after, "epoch_9.pth", 9, ["last.pth"]) == 9
    assert after.load("last.pth")["meta"]["step"] == 9
    after.unlock()


def sweep(run: Callable[[CheckpointStore], Iterator[int]], directory: Path, fault: str, stride: int) -> int:
    """All operations fail in turn; of the writes, which are many and alike, one in so many."""
    cases, writes = 0, 0
    for at, name in enumerate(operations(run, directory / "counted")):
        writes += name == "write"
        if (fault == "short" and name != "write") or (name == "write" and writes % stride):
            continue
        check(run, directory / str(at), Faulty(at, fault))
        cases += 1
    return cases


@pytest.mark.parametrize(
    ("run", "fault"), [(retention, "kill"), (retention, "eio"), (overwriting, "torn"), (overwriting, "full"), (overwriting, "short")]
)
def test_a_fault_in_any_kind_of_operation_loses_nothing_that_was_reported(
    tmp_path: Path, run: Callable[[CheckpointStore], Iterator[int]], fault: str
) -> None:
    assert sweep(run, tmp_path, fault, stride=9) > 10


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("run", [retention, overwriting])
def test_a_fault_in_every_single_operation_loses_nothing_that_was_reported(
    tmp_path: Path, run: Callable[[CheckpointStore], Iterator[int]], fault: str
) -> None:
    every_write = bool(os.environ.get("HOOKLINE_EVERY_WRITE"))
    assert sweep(run, tmp_path, fault, stride=1 if every_write else 7) > (100 if every_write else 12)
