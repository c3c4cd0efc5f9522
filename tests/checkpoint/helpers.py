"""Checkpoints and file systems that several tests of the store use."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import torch

from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.names import JOURNAL, LOCK, MANIFEST
from hookline.checkpoint.store import CheckpointStore


class Unsynced(FileSystem):
    """A file system without syncs, for tests that cut no power."""

    def sync(self, descriptor: int) -> None: ...

    def sync_directory(self, directory: Path) -> None: ...


class NoLinks(Unsynced):
    """A file system without hard links."""

    def link(self, source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")


class Evil:
    """An object whose unpickling creates a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.target}",)


def content(step: int, value: float | None = None) -> dict[str, Any]:
    """Return a checkpoint with a small tensor."""
    fill = float(step) if value is None else value
    return {"meta": {"step": step}, "state_dict": {"w": torch.full((20,), fill)}}


def opened(directory: Path, fs: FileSystem | None = None) -> CheckpointStore:
    """Return a store that is ready for saving."""
    store = CheckpointStore(directory, fs or Unsynced())
    store.prepare()
    return store


def saved(directory: Path, *steps: int) -> CheckpointStore:
    """Return a store with one checkpoint per step; the newest is also called `last.pth`."""
    store = opened(directory)
    for step in steps:
        store.save(content(step), f"epoch_{step}.pth", links=["last.pth"], step=step, epoch=step)
    return store


def listed(store: CheckpointStore) -> set[str]:
    """Return all names in the manifest."""
    return {name for entry in store.entries() for name in entry.names}


def files(directory: Path) -> set[str]:
    """Return the files of a directory without those of the store itself."""
    return set(os.listdir(directory)) - {MANIFEST, JOURNAL, LOCK}


def flip_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)
