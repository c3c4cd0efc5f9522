"""Checkpoints from paths that the user names."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import torch

from hookline.checkpoint.diff import diff
from hookline.checkpoint.errors import CheckpointError, UnsafeCheckpoint
from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.loading import load_checkpoint, load_whole, with_shards
from hookline.checkpoint.manifest import Entry, Ledger, write_ledger
from hookline.checkpoint.names import JOURNAL, MANIFEST
from hookline.checkpoint.store import CheckpointStore
from tests.checkpoint.helpers import Evil
from tests.problems import logged, raises_problem

CONTENT = {"state_dict": {"w": torch.arange(4.0)}, "meta": {"epoch": 1}}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    store = CheckpointStore(tmp_path)
    store.prepare()
    store.save(CONTENT, "epoch_1.pth", step=1, epoch=1)
    return tmp_path / "epoch_1.pth"


def test_a_file_of_a_store_is_verified(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert diff(load_checkpoint(path), CONTENT) == []
    assert diff(load_checkpoint(str(path)), CONTENT) == []
    assert not caplog.text
    data = bytearray(path.read_bytes())
    data[700] ^= 1
    path.write_bytes(data)
    with raises_problem(CheckpointError, file=str(path)):
        load_checkpoint(path)


def test_a_link_to_a_file_of_a_store_is_verified_too(
    path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    link = tmp_path / "elsewhere" / "model.pth"
    link.parent.mkdir()
    link.symlink_to(path)
    assert diff(load_checkpoint(link), CONTENT) == []
    assert not caplog.text


def test_any_other_file_is_loaded_with_a_warning_that_it_is_not_verified(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    torch.save(CONTENT, tmp_path / "other.pth")
    assert diff(load_checkpoint(tmp_path / "other.pth"), CONTENT) == []
    assert logged(caplog, "other.pth", "not verified")


def test_a_file_is_loaded_by_its_path_if_the_manifests_are_damaged(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in (MANIFEST, JOURNAL):
        (path.parent / name).write_bytes(b"lost")
    assert diff(load_checkpoint(path), CONTENT) == []
    assert logged(caplog, MANIFEST, "damaged")
    assert logged(caplog, "epoch_1.pth", "not verified")


def test_the_error_for_a_missing_file_suggests_the_nearest_name(path: Path) -> None:
    missing = path.with_name("epoch1.pth")
    with raises_problem(CheckpointError, file=str(missing), nearest="epoch_1.pth"):
        load_checkpoint(missing)
    (path.parent / "epoch1.py").touch()
    with raises_problem(CheckpointError, file=str(missing), nearest="epoch_1.pth"):
        load_checkpoint(missing)
    missing = path.parent / "absent" / "x.pth"
    with raises_problem(CheckpointError, file=str(missing), nearest=None):
        load_checkpoint(missing)


def test_a_checkpoint_without_shards_is_loaded_whole(path: Path) -> None:
    assert diff(load_whole(path), CONTENT) == []
    assert with_shards(CONTENT, path.parent) is CONTENT


def test_shards_are_never_read_from_outside_the_directory(tmp_path: Path) -> None:
    for name in ("../shards", "/tmp", ".."):
        with raises_problem(value=name):
            with_shards({"shards": name}, tmp_path)


def test_a_damaged_safetensors_file_is_an_error_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"garbage")
    with raises_problem(CheckpointError, file=str(path)):
        load_checkpoint(path)


def test_a_payload_is_not_executed_even_if_a_manifest_lists_it(tmp_path: Path) -> None:
    evil = tmp_path / "evil.pth"
    target = tmp_path / "executed"
    torch.save({"state_dict": Evil(target)}, evil)
    with raises_problem(UnsafeCheckpoint, file=str(evil)):
        load_checkpoint(evil)
    data = evil.read_bytes()
    entry = Entry(("evil.pth",), len(data), hashlib.sha256(data).hexdigest(), step=1, epoch=1)
    write_ledger(FileSystem(), tmp_path, MANIFEST, Ledger(1, (entry,)))
    with raises_problem(UnsafeCheckpoint, file=str(evil)):
        load_checkpoint(evil)
    assert not target.exists()
