"""Power cuts: any combination of the writes that were not synced may be lost."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.store import CheckpointStore
from tests.checkpoint.helpers import content, files, listed


class File:
    """The bytes written to a file, and those of them that are synced."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.synced = b""

    def after_power_cut(self, rng: random.Random) -> bytes:
        """Return the synced bytes and, of the rest, nothing, a part, zeros, or all."""
        rest = bytes(self.data[len(self.synced) :])
        return self.synced + rng.choice(
            [b"", rest[: rng.randint(0, len(rest))], bytes(len(rest)), rest]
        )


class Recorded(FileSystem):
    """Records for each name all files that it had since the directory was synced.

    A power cut may leave any of them.
    """

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

    def restore(
        self,
        directory: Path,
        choose: Callable[[list[File | None]], File | None],
        rng: random.Random,
    ) -> None:
        """Put a directory into a state that a power cut at this moment may leave."""
        for name in os.listdir(directory):
            (directory / name).unlink()
        contents: dict[int, bytes] = {}
        for name, meanings in self.meanings.items():
            file = choose(meanings)
            if file is not None:
                (directory / name).write_bytes(
                    contents.setdefault(id(file), file.after_power_cut(rng))
                )


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
def test_no_power_cut_loses_a_reported_checkpoint(
    tmp_path: Path, run: Callable[[CheckpointStore], Iterator[int]], seed: int
) -> None:
    rng = random.Random(seed)
    disk = tmp_path / "disk"
    disk.mkdir()
    cuts = 0
    reported = 0

    def cut_power(fs: Recorded) -> None:
        nonlocal cuts
        for choose in (
            lambda meanings: meanings[0],
            lambda meanings: meanings[-1],
            rng.choice,
            rng.choice,
        ):
            cuts += 1
            fs.restore(disk, choose, rng)
            before = CheckpointStore(disk).find_latest().entry
            assert reported == 0 or (before is not None and before.step >= reported)
            store = CheckpointStore(disk)
            store.prepare()
            after = store.find_latest().entry
            assert (after and after.step) == (before and before.step)
            assert files(disk) == listed(store)
            store.unlock()

    store = CheckpointStore(tmp_path / "run", Recorded(cut_power))
    store.prepare()
    for step in run(store):
        reported = step
    assert cuts > 200
