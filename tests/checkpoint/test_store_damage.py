"""Flipped bits and truncated files are detected before anything is loaded."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hookline.checkpoint.diff import diff
from hookline.checkpoint.loading import load_whole
from hookline.checkpoint.names import JOURNAL, MANIFEST
from hookline.checkpoint.store import CheckpointError, CheckpointStore
from tests.checkpoint.helpers import content, opened
from tests.problems import raises_problem

NAMES = ["epoch_1.pth", "epoch_2.pth", "epoch_3.pth"]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    store = opened(tmp_path)
    for step, name in enumerate(NAMES, start=1):
        store.save(content(step), name, step=step, epoch=step)
    store.unlock()
    return tmp_path


def check_newest_is_damaged(directory: Path) -> None:
    """Check that the newest checkpoint is rejected and the one before it is used."""
    store = CheckpointStore(directory)
    for use in (store.load, store.verify):
        with raises_problem(CheckpointError, file=str(directory / "epoch_3.pth")):
            use("epoch_3.pth")
    found, skipped = store.find_latest()
    assert found is not None
    assert found.name == "epoch_2.pth"
    assert [text.partition(":")[0] for text in skipped] == ["epoch_3.pth"]
    assert diff(store.load(found), content(2)) == []


def check_all_are_intact(directory: Path) -> None:
    store = CheckpointStore(directory)
    assert [entry.name for entry in store.entries()] == NAMES
    found, skipped = store.find_latest()
    assert found is not None
    assert found.name == "epoch_3.pth"
    assert skipped == []
    assert diff(store.load(found), content(3)) == []


def damage(directory: Path, flips: int, truncations: int) -> None:
    """Damage files at random places, one at a time, and check the store each time."""
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
        if name == "epoch_3.pth":
            check_newest_is_damaged(directory)
        else:
            check_all_are_intact(directory)
        path.write_bytes(good)
    check_all_are_intact(directory)


def test_flipped_bits_and_truncations_are_detected(directory: Path) -> None:
    damage(directory, flips=60, truncations=20)


@pytest.mark.exhaustive
def test_a_thousand_flipped_bits_and_two_hundred_truncations_are_detected(directory: Path) -> None:
    damage(directory, flips=1000, truncations=200)


def test_a_damaged_manifest_is_repaired_at_the_next_start(directory: Path) -> None:
    for name in (MANIFEST, JOURNAL):
        (directory / name).write_bytes((directory / name).read_bytes()[:-20])
        store = CheckpointStore(directory)
        store.prepare()
        check_all_are_intact(directory)
        store.save(content(3), "epoch_3.pth", step=3, epoch=3)
        store.unlock()
        check_all_are_intact(directory)


@pytest.mark.parametrize("name", ["__0_0.distcp", "index.json"])
def test_a_flipped_bit_in_a_shard_is_detected(tmp_path: Path, name: str) -> None:
    store = opened(tmp_path)
    shards = store.claim_shards(1)
    for part in ("__0_0.distcp", "index.json"):
        (tmp_path / shards / part).write_bytes(bytes(100))
    parts = store.describe_shards(shards)
    checkpoint = {**content(1), "shards": shards}
    store.save(checkpoint, "epoch_1.pth", step=1, epoch=1, parts=parts)
    assert store.load("epoch_1.pth")["shards"] == shards
    (tmp_path / shards / name).write_bytes(bytes(50) + b"\x01" + bytes(49))
    for use in (store.load, store.verify, lambda name: load_whole(tmp_path / name)):
        with raises_problem(CheckpointError, file=str(tmp_path / "epoch_1.pth")) as caught:
            use("epoch_1.pth")
        assert f"{shards}/{name}" in str(caught.value)


def test_swapped_files_are_detected(directory: Path) -> None:
    second = directory / "epoch_2.pth"
    third = directory / "epoch_3.pth"
    content_of_second = second.read_bytes()
    second.write_bytes(third.read_bytes())
    third.write_bytes(content_of_second)
    found, skipped = CheckpointStore(directory).find_latest()
    assert found is not None
    assert found.name == "epoch_1.pth"
    assert len(skipped) == 2


def test_without_an_intact_checkpoint_there_is_no_latest(directory: Path) -> None:
    for name in NAMES:
        (directory / name).write_bytes(b"")
    found, skipped = CheckpointStore(directory).find_latest()
    assert found is None
    assert len(skipped) == 3
