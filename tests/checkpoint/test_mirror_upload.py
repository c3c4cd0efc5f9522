"""Bringing a mirror to the state of a local directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.checkpoint.manifest import EARLIER_RUN
from hookline.checkpoint.mirror_manifest import (
    content_key,
    list_numbers,
    manifest_key,
    read_manifest,
)
from hookline.checkpoint.mirror_restore import content_problem
from hookline.checkpoint.mirror_upload import MirrorTaken, MirrorUpload
from hookline.checkpoint.store import CheckpointStore
from hookline.remote import RemoteDirectory, RemoteError
from tests.checkpoint.helpers import content, opened, saved


class Faulty(RemoteDirectory):
    """A directory that fails at requests which `fails` selects, and notes all of them."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.requests: list[tuple[str, str]] = []
        self.fails = lambda action, key: False

    def _requests(self, action, key):
        self.requests.append((action, key))
        if self.fails(action, key):
            raise RemoteError(f"cannot {action}", file=key)
        return super()._requests(action, key)


@pytest.fixture
def remote(tmp_path) -> Faulty:
    return Faulty(f"file://{tmp_path}/mirror")


def uploader(remote: RemoteDirectory, store: CheckpointStore) -> MirrorUpload:
    return MirrorUpload(remote, store, store.directory, lambda size: None)


def run(upload: MirrorUpload) -> None:
    """Upload, and delete afterwards."""
    upload.run()
    upload.remove_surplus()
    upload.abort_uploads()


def save(store: CheckpointStore, step: int, *links: str) -> None:
    store.save(content(step), f"epoch_{step}.pth", links=links, step=step, epoch=step)


def mirrored(remote: RemoteDirectory) -> dict[str, int]:
    """Return the names in the mirror and their iterations."""
    manifest = read_manifest(remote)
    assert manifest is not None
    stored = set(remote.list("files"))
    assert manifest.keys() == stored, "contents and manifest must agree after a pass"
    return {name: entry.step for entry in manifest.checkpoints() for name in entry.names}


def test_a_mirror_has_the_checkpoints_and_files_of_the_directory(remote, tmp_path):
    store = saved(tmp_path / "run", 1, 2)
    (store.directory / "log.jsonl").write_text("row\n")
    run(uploader(remote, store))
    assert mirrored(remote) == {"epoch_1.pth": 1, "epoch_2.pth": 2, "last.pth": 2}
    manifest = read_manifest(remote)
    assert [part.name for part in manifest.files] == ["log.jsonl"]


def test_a_content_with_several_names_is_uploaded_once(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    run(uploader(remote, store))
    assert [action for action, _ in remote.requests].count("upload") == 1


def test_a_pass_without_changes_writes_nothing(remote, tmp_path):
    upload = uploader(remote, saved(tmp_path / "run", 1))
    run(upload)
    number = read_manifest(remote).number
    remote.requests.clear()
    run(upload)
    assert read_manifest(remote).number == number
    assert {action for action, _ in remote.requests} <= {"list", "read"}


def test_removed_checkpoints_leave_the_mirror_after_newer_ones_are_complete(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    upload = uploader(remote, store)
    run(upload)
    save(store, 2, "last.pth")
    store.remove("epoch_1.pth")
    remote.fails = lambda action, key: action == "upload"
    with pytest.raises(RemoteError):
        run(upload)
    remote.fails = lambda action, key: False
    assert mirrored(remote) == {"epoch_1.pth": 1, "last.pth": 1}
    run(upload)
    assert mirrored(remote) == {"epoch_2.pth": 2, "last.pth": 2}
    assert len(list_numbers(remote)) == 1


@pytest.mark.parametrize("action", ["upload", "create", "read", "list", "delete"])
def test_after_a_failure_at_any_request_a_complete_checkpoint_is_listed(remote, tmp_path, action):
    store = saved(tmp_path / "run", 1)
    upload = uploader(remote, store)
    run(upload)
    save(store, 2, "last.pth")
    store.remove("epoch_1.pth")
    remote.fails = lambda each, key: each == action
    with pytest.raises(RemoteError):
        run(upload)
    remote.fails = lambda each, key: False
    manifest = read_manifest(remote)
    assert manifest.keys() <= set(remote.list("files"))
    assert manifest.newest() is not None
    run(upload)
    assert mirrored(remote) == {"epoch_2.pth": 2, "last.pth": 2}


def test_the_checkpoint_that_the_run_resumed_from_is_kept(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    run(uploader(remote, store))
    resumed = uploader(remote, store)
    resumed.resumed_from = store.entries()[0].sha256
    for step in (2, 3):
        save(store, step, "last.pth")
    store.remove("epoch_1.pth", "epoch_2.pth")
    run(resumed)
    assert mirrored(remote) == {"epoch_1.pth": 1, "epoch_3.pth": 3, "last.pth": 3}


def test_checkpoints_of_another_run_are_kept_but_never_resumed_from(remote, tmp_path):
    run(uploader(remote, saved(tmp_path / "first", 7)))
    store = opened(tmp_path / "second")
    upload = uploader(remote, store)
    run(upload)
    assert read_manifest(remote).newest() is None
    save(store, 1, "last.pth")
    run(upload)
    entries = {entry.name: entry.tags for entry in read_manifest(remote).entries}
    assert entries == {"epoch_7.pth": (EARLIER_RUN,), "epoch_1.pth": ()}


def test_a_process_that_lost_the_mirror_changes_nothing(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    old = uploader(remote, store)
    run(old)
    new = uploader(remote, store)
    run(new)
    save(store, 2)
    run(new)
    before = remote.list("")
    save(store, 3)
    with pytest.raises(MirrorTaken):
        run(old)
    run(new)
    assert set(before) - set(remote.list("")) <= {manifest_key(n) for n in range(20)}
    assert set(mirrored(remote)) == {"epoch_1.pth", "epoch_2.pth", "epoch_3.pth", "last.pth"}


def test_a_process_that_lost_the_mirror_long_ago_deletes_nothing(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    old = uploader(remote, store)
    run(old)
    new = uploader(remote, store)
    for step in (2, 3, 4):
        save(store, step)
        run(new)
    save(store, 5)
    with pytest.raises(MirrorTaken):
        run(old)
    manifest = read_manifest(remote)
    assert manifest.keys() <= set(remote.list("files"))
    assert manifest.entries[-1].step == 4


def test_leftovers_of_a_killed_upload_are_removed(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    killed = uploader(remote, store)
    run(killed)
    save(store, 2)
    remote.fails = lambda action, key: action == "create"
    with pytest.raises(RemoteError):
        run(killed)
    remote.fails = lambda action, key: False
    store.remove("epoch_2.pth")
    run(uploader(remote, store))
    assert mirrored(remote) == {"epoch_1.pth": 1, "last.pth": 1}


def test_a_content_that_a_killed_upload_cut_is_uploaded_again(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    run(uploader(remote, store))
    save(store, 2)
    (entry,) = [each for each in store.entries() if each.step == 2]
    cut = Path(remote.url.removeprefix("file://"), content_key(entry))
    cut.write_bytes((store.directory / "epoch_2.pth").read_bytes()[:100])
    run(uploader(remote, store))
    assert content_problem(remote, entry) is None


def test_a_storage_that_lists_a_new_manifest_late_is_no_failure(remote, tmp_path):
    class Late(Faulty):
        def list(self, key):
            return super().list(key) if key != "manifests" else []

    upload = uploader(Late(remote.url), saved(tmp_path / "run", 1))
    run(upload)
    assert upload.only_local() == []


def test_files_of_others_in_the_bucket_are_left_alone(remote, tmp_path):
    path = Path(remote.url.removeprefix("file://"))
    (path / "files").mkdir(parents=True)
    (path / "files" / "notes.txt").write_text("mine")
    run(uploader(remote, saved(tmp_path / "run", 1)))
    assert "files/notes.txt" in remote.list("files")


def test_a_damaged_local_checkpoint_is_not_uploaded(remote, tmp_path):
    store = saved(tmp_path / "run", 1)
    save(store, 2)
    (store.directory / "epoch_2.pth").write_bytes(b"damaged")
    upload = uploader(remote, store)
    run(upload)
    assert mirrored(remote) == {"epoch_1.pth": 1, "last.pth": 1}
    assert upload.only_local() == ["epoch_2.pth"]


def test_a_manifest_that_the_storage_damages_is_written_again(remote, tmp_path):
    class Truncating(Faulty):
        def create(self, key, data):
            is_first = key == manifest_key(1)
            return super().create(key, data[:10] if is_first else data)

    truncating = Truncating(remote.url)
    run(uploader(truncating, saved(tmp_path / "run", 1)))
    assert mirrored(remote) == {"epoch_1.pth": 1, "last.pth": 1}
