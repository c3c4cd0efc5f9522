"""Names for one checkpoint, and the file that is written under all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hookline.checkpoint import load_checkpoint
from hookline.checkpoint.queue import CheckpointQueue
from hookline.dist import World


def open_queue(folder: Path, rank: int = 0, excluded: tuple[str, ...] = ()) -> CheckpointQueue:
    queue = CheckpointQueue(folder / "unused", World(rank, 1))
    queue.open_store(folder, False, excluded, lambda failure: None)
    return queue


def test_a_checkpoint_is_written_once_under_all_names(tmp_path: Path) -> None:
    queue = open_queue(tmp_path, excluded=("optimizer",))
    for name in ("last", "best_accuracy", "last.pth"):
        queue.queue(name)
    assert queue.names == ["last.pth", "best_accuracy.pth"]
    queue.write_queued({"meta": {}, "x": torch.ones(2), "optimizer": {}}, None, step=3, epoch=1)
    queue.close()
    for name in ("last.pth", "best_accuracy.pth"):
        checkpoint = load_checkpoint(tmp_path / name)
        assert torch.equal(checkpoint["x"], torch.ones(2))
        assert "optimizer" not in checkpoint
    assert queue.names == []
    assert not queue.is_open


def test_the_newest_checkpoint_is_found(tmp_path: Path) -> None:
    queue = open_queue(tmp_path)
    assert queue.find_newest() is None
    for step in (1, 2):
        queue.queue(f"iter_{step}")
        queue.write_queued({"meta": {}, "step": step}, None, step=step, epoch=0)
    newest = queue.find_newest()
    queue.close()
    assert newest is not None
    assert newest.name == "iter_2.pth"


def test_only_rank_0_writes(tmp_path: Path) -> None:
    queue = open_queue(tmp_path, rank=1)
    queue.queue("last")
    queue.write_queued({"meta": {}}, None, step=1, epoch=0)
    queue.close()
    assert list(tmp_path.glob("*.pth")) == []


@pytest.mark.parametrize("restore", [True, False])
def test_checkpoints_of_the_mirror_are_restored_on_request(tmp_path: Path, restore: bool) -> None:
    url = f"file://{tmp_path}/mirror"
    first = open_queue(tmp_path / "first")
    first.open_mirror(url, tmp_path / "first", restore=False)
    first.start_mirror()
    first.queue("last")
    first.write_queued({"meta": {}}, None, step=3, epoch=1)
    first.close()
    first.finish_mirror(None)
    second = open_queue(tmp_path / "second")
    second.open_mirror(url, tmp_path / "second", restore)
    newest = second.find_newest()
    second.close()
    assert (None if newest is None else newest.step) == (3 if restore else None)
