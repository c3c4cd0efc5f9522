"""What was not synced when the power goes may be lost, or not, in any combination."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.names import JOURNAL, LOCK, MANIFEST
from hookline.checkpoint.store import CheckpointStore


class File:
    """What was written to a file, and how much of it is safe."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = b""

    def after_power_cut(self, rng: random.Random) -> bytes:
        """All that was synced; of the rest nothing, a part, or zeros in its place."""
        rest = bytes(self.data[len(self.synced) :])
        return self.synced + rng.choice([b"", rest[: rng.randint(0, len(rest))], bytes(len(rest)), rest])


class Recorded(FileSystem):
    """Remembers for each name all that it meant since the directory was synced: a power cut may leave any of it."""

    def __init__(self, watch: Callable[[Recorded], None]) -> None:
        self.meanings: dict[str, list[File | None]] = {}
        self.open: dict[int, File] = {}
        self.watch = watch

    def mean(self, path: Path, file: File | None) -> None:
        self.meanings.setdefault(path.name, [None]).append(file)
        self.watch(self)

    def create(self, path: Path) -> int:
        descriptor = super().create(path)
        self.open[descriptor] = File()
        self.mean(path, self.open[descriptor])
        return descriptor

    def write(self, descriptor: int, data: memoryview) -> int:
        self.open[descriptor].data += data
        return super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self.watch(self)
        self.open[descriptor].synced = bytes(self.open[descriptor].data)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self.mean(target, self.meanings[source.name][-1])
        self.mean(source, None)

    def link(self, source: Path, target: Path) -> None:
        super().link(source, target)
        self.mean(target, self.meanings[source.name][-1])

    def unlink(self, path: Path) -> None:
        super().unlink(path)
        self.mean(path, None)

    def sync_directory(self, directory: Path) -> None:
        for meanings in self.meanings.values():
            del meanings[:-1]
        self.watch(self)

    def restore(self, directory: Path, choose: Callable[[list[File | None]], File | None], rng: random.Random) -> None:
        """Make the directory look as it may after a power cut now."""
        for name in os.listdir(directory):
            (directory / name).unlink()
        contents: dict[int, bytes] = {}
        for name, meanings in self.meanings.items():
            file = choose(meanings)
            if file is not None:
                (directory / name).write_bytes(contents.setdefault(id(file), file.after_power_cut(rng)))


def content(step: int) -> dict[str, Any]:
    return {"meta": {"step": step}, "state_dict": {"w": torch.full((20,), float(step))}}


def retention(store: CheckpointStore) -> Iterator[int]:
    for step in (1, 2, 3):
        store.save(content(step), f"epoch_{step}.pth", links=["last.pth"], step=step, epoch=step)
        yield step
        store.remove(f"epoch_{step - 1}.pth")


def overwriting(store: CheckpointStore) -> Iterator[int]:
    for step in (1, 2, 3):
        store.save(content(step), "only.pth", step=step, epoch=step)
        yield step


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("run", [retention, overwriting])
def test_no_power_cut_takes_back_what_was_reported(tmp_path: Path, run: Callable[[CheckpointStore], Iterator[int]], seed: int) -> None:
    rng, disk, cuts, reported = random.Random(seed), tmp_path / "disk", 0, 0
    disk.mkdir()

    def cut_power(fs: Recorded) -> None:
        nonlocal cuts
        for choose in (lambda meanings: meanings[0], lambda meanings: meanings[-1], rng.choice, rng.choice):
            cuts += 1
            fs.restore(disk, choose, rng)
            before = CheckpointStore(disk).find_latest().entry
            assert reported == 0 or (before is not None and before.step >= reported)
            store = CheckpointStore(disk)
            store.prepare()
            after = store.find_latest().entry
            assert (after and after.step) == (before and before.step)
            known = {name for entry in store.entries() for name in entry.names}
            assert set(os.listdir(disk)) - {MANIFEST, JOURNAL, LOCK} == known
            store.unlock()

    store = CheckpointStore(tmp_path / "run", Recorded(cut_power))
    store.prepare()
    for step in run(store):
        reported = step
    assert cuts > 200
