"""Saving beside training."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from hookline.checkpoint import CheckpointError, CheckpointStore, FileSystem, Saver, diff
from hookline.checkpoint.saver import CleanUp
from hookline.dist import World
from tests.checkpoint.helpers import content, opened
from tests.waiting import LIMIT_S

ABOUT = {"step": 2, "epoch": 0}


class Gate(FileSystem):
    """A disk whose writes block while the gate is closed."""

    def __init__(self) -> None:
        self.is_open = threading.Event()
        self.is_open.set()

    def write(self, descriptor: int, data: memoryview) -> int:
        self.is_open.wait(LIMIT_S)
        return super().write(descriptor, data)


class Broken(FileSystem):
    """A disk on which every sync fails once `is_broken` is set."""

    is_broken = False

    def sync(self, descriptor: int) -> None:
        if self.is_broken:
            raise OSError(5, "Input/output error")
        super().sync(descriptor)


def make_saver(store: CheckpointStore, background: bool = True) -> tuple[Saver, list[Callable]]:
    """Return a saver and the list of the failures that it reports."""
    reports: list[Callable] = []
    return Saver(store, background, reports.append), reports


def test_a_slow_disk_does_not_block_training_and_the_file_has_the_old_weights(
    tmp_path: Path,
) -> None:
    gate = Gate()
    store = opened(tmp_path, gate)
    saver, _ = make_saver(store)
    weight = torch.zeros(4)
    gate.is_open.clear()
    saver.save({"state_dict": {"w": weight}}, ["a.pth", "last.pth"], step=1, epoch=0)
    weight.data += 1  # the disk has not accepted a byte yet
    weight.numpy()[0] = 9
    gate.is_open.set()
    saver.wait()
    assert store.load("last.pth")["state_dict"]["w"].tolist() == [0, 0, 0, 0]


def test_a_second_save_waits_for_the_first_one(tmp_path: Path) -> None:
    gate = Gate()
    store = opened(tmp_path, gate)
    saver, _ = make_saver(store)
    gate.is_open.clear()
    saver.save(content(1), ["a.pth"], step=1, epoch=0)
    second = threading.Thread(
        target=saver.save, args=(content(2), ["b.pth"]), kwargs=ABOUT, daemon=True
    )
    second.start()
    assert store.entries() == []
    assert second.is_alive()
    gate.is_open.set()
    second.join(LIMIT_S)
    assert not second.is_alive()
    assert "a.pth" in [entry.name for entry in store.entries()]
    saver.wait()
    for name, step in (("a.pth", 1), ("b.pth", 2)):
        assert diff(store.load(name), content(step)) == []


def test_surplus_checkpoints_are_removed_after_the_new_one_is_saved(tmp_path: Path) -> None:
    store = opened(tmp_path)
    saver, _ = make_saver(store)
    for step, name in enumerate(["a.pth", "b.pth"]):
        saver.save(content(step), [name], step=step, epoch=0)
    saver.save(content(2), ["c.pth"], CleanUp(["a.pth"]), step=2, epoch=0)
    saver.wait()
    assert [entry.name for entry in store.entries()] == ["b.pth", "c.pth"]


def test_an_error_in_the_background_is_reported_and_raised_once(tmp_path: Path) -> None:
    disk = Broken()
    store = opened(tmp_path, disk)
    saver, reports = make_saver(store)
    disk.is_broken = True
    saver.save(content(1), ["a.pth"], step=1, epoch=0)
    with pytest.raises(CheckpointError) as caught:
        saver.wait()
    assert caught.value.file == str(tmp_path / "a.pth")
    saver.wait()
    assert len(reports) == 1


def test_in_the_foreground_the_file_exists_at_once(tmp_path: Path) -> None:
    store = opened(tmp_path)
    saver, _ = make_saver(store, background=False)
    saver.save(content(1), ["a.pth"], step=1, epoch=0)
    assert store.load("a.pth")["meta"]["step"] == 1


def test_a_rank_without_a_shard_directory_raises_instead_of_writing(tmp_path: Path) -> None:
    class Failed(World):
        def gather_text(self, text: str) -> list[str]:
            return ["True", "True"] if text == "True" else ["", text]

    saver, _ = make_saver(CheckpointStore(tmp_path))
    with pytest.raises(CheckpointError) as caught:
        saver.save_shards(content(1), ["a.pth"], Failed(1, 2), None, step=1, epoch=0)
    assert caught.value.file == str(tmp_path)
    assert not list(tmp_path.iterdir())
