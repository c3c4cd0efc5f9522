"""Checkpoints that no manifest lists."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.checkpoint.adoption import describe_unlisted, unlisted_files
from hookline.checkpoint.names import temporary_name
from tests.checkpoint.helpers import Evil, content, flip_bit, listed, opened, saved
from tests.problems import logged


def run_checkpoint(step: int, **parts: Any) -> dict[str, Any]:
    """Return a checkpoint that describes itself."""
    meta = {
        "iter": step,
        "epoch": step // 2,
        "time": 5.0,
        "versions": {"hookline": "0.2.0"},
        "metrics": {"accuracy": 0.5},
    }
    return {**content(step), "meta": meta, **parts}


def write(path: Path, checkpoint: Any) -> None:
    torch.save(checkpoint, path)


def test_copied_checkpoints_are_described_by_their_content_and_sorted(tmp_path: Path) -> None:
    write(tmp_path / "epoch_10.pth", run_checkpoint(20))
    write(tmp_path / "epoch_9.pth", run_checkpoint(18))
    shutil.copy(tmp_path / "epoch_10.pth", tmp_path / "last.pth")
    first, second = describe_unlisted(tmp_path, ())
    assert (first.names, first.step, first.epoch) == (("epoch_9.pth",), 18, 9)
    assert second.names == ("epoch_10.pth", "last.pth")
    assert (second.step, second.metrics, second.finite) == (20, {"accuracy": 0.5}, True)
    assert second.size == (tmp_path / "last.pth").stat().st_size


@pytest.mark.parametrize(
    "checkpoint",
    [
        {"state_dict": {"w": torch.ones(2)}},
        {"meta": {"iter": "3", "epoch": 1}, "state_dict": {}},
        {"meta": {"iter": 3, "epoch": 1, "versions": {"mmengine": "0.10"}}, "state_dict": {}},
        run_checkpoint(3, shards="shards_3_00000000"),
        run_checkpoint(3, state_dict=[1]),
        {**run_checkpoint(3), "meta": {**run_checkpoint(3)["meta"], "inexact": True}},
        [1, 2],
        Evil(Path("never")),
    ],
)
def test_a_file_that_no_run_can_resume_from_is_ignored(tmp_path: Path, checkpoint: Any) -> None:
    write(tmp_path / "last.pth", checkpoint)
    assert describe_unlisted(tmp_path, ()) == []


def test_a_damaged_file_is_ignored_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path / "last.pth", run_checkpoint(3))
    flip_bit(tmp_path / "last.pth")
    (tmp_path / "short.pth").write_bytes((tmp_path / "last.pth").read_bytes()[:300])
    names = {entry.name for entry in describe_unlisted(tmp_path, ())}
    assert "short.pth" not in names
    assert logged(caplog, "short.pth")


def test_links_temporary_files_and_listed_files_are_no_candidates(tmp_path: Path) -> None:
    store = saved(tmp_path, 1)
    (tmp_path / "link.pth").symlink_to(tmp_path / "epoch_1.pth")
    (tmp_path / temporary_name()).write_bytes(b"")
    (tmp_path / "directory.pth").mkdir()
    (tmp_path / "own.pt").write_bytes(b"")
    assert unlisted_files(tmp_path, store.entries()) == [tmp_path / "own.pt"]
    assert unlisted_files(tmp_path / "missing", ()) == []


def test_an_adopted_checkpoint_is_listed_and_verified(tmp_path: Path) -> None:
    write(tmp_path / "last.pth", run_checkpoint(3))
    write(tmp_path / "nan.pth", run_checkpoint(4, state_dict={"w": torch.tensor([torch.nan])}))
    store = opened(tmp_path)
    assert [entry.name for entry in store.adopt()] == ["last.pth", "nan.pth"]
    latest = store.latest()
    assert latest is not None
    assert (latest.name, latest.step) == ("last.pth", 3)
    store.verify("last.pth")
    assert store.load("last.pth")["meta"]["iter"] == 3


def test_nothing_is_adopted_beside_listed_checkpoints(tmp_path: Path) -> None:
    store = saved(tmp_path, 1)
    write(tmp_path / "other.pth", run_checkpoint(9))
    assert store.adopt() == []
    assert listed(store) == {"epoch_1.pth", "last.pth"}
