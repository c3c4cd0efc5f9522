from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from hookline.checkpoint.diff import diff
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem
from hookline.checkpoint.loading import load_checkpoint
from hookline.checkpoint.manifest import Entry, Ledger, write_ledger
from hookline.checkpoint.names import JOURNAL, MANIFEST
from hookline.checkpoint.store import CheckpointStore

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
    with pytest.raises(CheckpointError, match="does not match its checksum"):
        load_checkpoint(path)


def test_a_link_to_a_file_of_a_store_is_verified_too(path: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    link = tmp_path / "elsewhere" / "model.pth"
    link.parent.mkdir()
    link.symlink_to(path)
    assert diff(load_checkpoint(link), CONTENT) == []
    assert not caplog.text


def test_any_other_file_is_loaded_and_the_log_says_that_it_has_no_checksum(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    torch.save(CONTENT, tmp_path / "other.pth")
    assert diff(load_checkpoint(tmp_path / "other.pth"), CONTENT) == []
    assert "without verification" in caplog.text


def test_a_file_can_be_named_even_if_the_manifests_are_lost(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in (MANIFEST, JOURNAL):
        (path.parent / name).write_bytes(b"lost")
    assert diff(load_checkpoint(path), CONTENT) == []
    assert "damaged" in caplog.text
    assert "without verification" in caplog.text


def test_a_missing_file_gets_the_nearest_name(path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no such file; did you mean 'epoch_1\.pth'"):
        load_checkpoint(path.with_name("epoch1.pth"))
    with pytest.raises(CheckpointError, match="no such file"):
        load_checkpoint(path.parent / "absent" / "x.pth")


class Evil:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.target}",)


def test_a_payload_is_not_executed_not_even_if_the_manifest_vouches_for_it(tmp_path: Path) -> None:
    evil, target = tmp_path / "evil.pth", tmp_path / "executed"
    torch.save({"state_dict": Evil(target)}, evil)
    with pytest.raises(CheckpointError, match=r"evil\.pth: refused"):
        load_checkpoint(evil)
    data = evil.read_bytes()
    entry = Entry(("evil.pth",), len(data), hashlib.sha256(data).hexdigest(), step=1, epoch=1)
    write_ledger(FileSystem(), tmp_path, MANIFEST, Ledger(1, (entry,)))
    with pytest.raises(CheckpointError, match=r"evil\.pth: refused"):
        load_checkpoint(evil)
    assert not target.exists()
