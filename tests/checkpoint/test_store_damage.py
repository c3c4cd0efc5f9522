"""Bits flip and files end too early."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.checkpoint.diff import diff
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.loading import load_whole
from hookline.checkpoint.names import JOURNAL, MANIFEST
from hookline.checkpoint.store import CheckpointStore


def content(step: int) -> dict[str, Any]:
    return {"meta": {"step": step}, "state_dict": {"w": torch.full((200,), float(step))}, "optimizer": {"state": {0: torch.ones(3)}}}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    store = CheckpointStore(tmp_path)
    store.prepare()
    for step in (1, 2, 3):
        store.save(content(step), f"epoch_{step}.pth", step=step, epoch=step)
    store.unlock()
    return tmp_path


def check_newest_is_damaged(directory: Path) -> None:
    store = CheckpointStore(directory)
    for use in (store.load, store.verify):
        with pytest.raises(CheckpointError, match=r"epoch_3\.pth: damaged"):
            use("epoch_3.pth")
    found, skipped = store.find_latest()
    assert found is not None
    assert found.name == "epoch_2.pth"
    assert [text.split(":")[0] for text in skipped] == ["epoch_3.pth"]
    assert diff(store.load(found), content(2)) == []


def check_nothing_is_lost(directory: Path) -> None:
    store = CheckpointStore(directory)
    assert [entry.name for entry in store.entries()] == ["epoch_1.pth", "epoch_2.pth", "epoch_3.pth"]
    found, skipped = store.find_latest()
    assert found is not None
    assert (found.name, skipped) == ("epoch_3.pth", [])
    assert diff(store.load(found), content(3)) == []


def damage(directory: Path, flips: int, truncations: int) -> None:
    rng = random.Random(0)
    for number in range(flips + truncations):
        name = rng.choice(["epoch_3.pth", "epoch_3.pth", MANIFEST, JOURNAL])
        path = directory / name
        good = path.read_bytes()
        bad = bytearray(good)
        if number < flips:
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        else:
            del bad[rng.randrange(len(bad)) :]
        path.write_bytes(bad)
        check_newest_is_damaged(directory) if name == "epoch_3.pth" else check_nothing_is_lost(directory)
        path.write_bytes(good)
    check_nothing_is_lost(directory)


def test_a_flipped_bit_or_a_missing_end_is_found_before_anything_is_loaded(directory: Path) -> None:
    damage(directory, flips=60, truncations=20)


@pytest.mark.exhaustive
def test_a_thousand_flipped_bits_and_two_hundred_missing_ends_are_found(directory: Path) -> None:
    damage(directory, flips=1000, truncations=200)


def test_a_damaged_manifest_is_made_good_at_the_next_start(directory: Path) -> None:
    for name in (MANIFEST, JOURNAL):
        (directory / name).write_bytes((directory / name).read_bytes()[:-20])
        store = CheckpointStore(directory)
        store.prepare()
        check_nothing_is_lost(directory)
        store.save(content(3), "epoch_3.pth", step=3, epoch=3)
        store.unlock()
        check_nothing_is_lost(directory)


@pytest.mark.parametrize("name", ["__0_0.distcp", ".metadata"])
def test_a_flipped_bit_in_a_part_is_found_before_anything_is_loaded(tmp_path: Path, name: str) -> None:
    store = CheckpointStore(tmp_path)
    store.prepare()
    (tmp_path / "shards_1").mkdir()
    for part in ("__0_0.distcp", ".metadata"):
        (tmp_path / "shards_1" / part).write_bytes(bytes(100))
    parts = store.describe_shards("shards_1")
    store.save({**content(1), "shards": "shards_1"}, "epoch_1.pth", step=1, epoch=1, links=["last.pth"], parts=parts)
    assert store.load("last.pth")["shards"] == "shards_1"
    (tmp_path / "shards_1" / name).write_bytes(bytes(50) + b"\x01" + bytes(49))
    for use in (store.load, store.verify, lambda name: load_whole(tmp_path / name)):
        with pytest.raises(CheckpointError, match=rf"last\.pth: shards_1/{re.escape(name)}: damaged: its content does not match"):
            use("last.pth")


def test_swapped_files_are_found(directory: Path) -> None:
    second, third = (directory / f"epoch_{step}.pth" for step in (2, 3))
    contents = second.read_bytes(), third.read_bytes()
    third.write_bytes(contents[0])
    second.write_bytes(contents[1])
    found, skipped = CheckpointStore(directory).find_latest()
    assert found is not None
    assert found.name == "epoch_1.pth"
    assert len(skipped) == 2


def test_nothing_good_is_none_and_not_something_bad(directory: Path) -> None:
    for step in (1, 2, 3):
        (directory / f"epoch_{step}.pth").write_bytes(b"")
    found, skipped = CheckpointStore(directory).find_latest()
    assert found is None
    assert len(skipped) == 3
