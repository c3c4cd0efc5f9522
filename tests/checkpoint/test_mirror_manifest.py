"""The manifest of a mirror: its form, its damage, and the names in it."""

from __future__ import annotations

import dataclasses
import json

import pytest

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.manifest import Entry, Part, checksum
from hookline.checkpoint.mirror_manifest import (
    MirrorManifest,
    content_key,
    decode,
    encode,
    is_content_key,
    manifest_key,
    read_manifest,
)
from hookline.remote import RemoteDirectory

A = "a" * 64
B = "b" * 64
ENTRY = Entry(("epoch_1.pth", "last.pth"), 3, A, step=1, epoch=1, metrics={"accuracy": 0.5})
SHARDED = dataclasses.replace(ENTRY, parts=(Part("shards_1_0a1b2c3d/__0_0.distcp", 2, B),))
MANIFEST = MirrorManifest(3, "me", (SHARDED,), (Part("pictures/a.png", 1, B),), ENTRY)


@pytest.fixture
def remote(tmp_path):
    return RemoteDirectory(f"file://{tmp_path}/mirror")


def forged(**changes) -> bytes:
    """Return a manifest with an intact checksum and a content of another program."""
    body = json.loads(encode(MANIFEST))
    del body["sha256"]
    body.update(changes)
    return json.dumps({"sha256": checksum(body), **body}).encode()


def test_a_manifest_is_read_as_it_was_written():
    assert decode(encode(MANIFEST)) == MANIFEST


def test_every_changed_byte_is_noticed():
    data = bytearray(encode(MANIFEST))
    for position in range(0, len(data), 7):
        damaged = bytes(data[:position]) + bytes([data[position] ^ 4]) + bytes(data[position + 1 :])
        with pytest.raises(ValueError):
            decode(damaged)


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "checkpoints.json", "a//b"])
def test_a_name_that_leads_out_of_the_directory_is_rejected(name):
    with pytest.raises(ValueError):
        decode(forged(files=[{"name": name, "size": 1, "sha256": A}]))


def test_a_hash_that_is_a_path_is_rejected():
    with pytest.raises(ValueError):
        decode(forged(files=[{"name": "log", "size": 1, "sha256": "../x"}]))


def test_a_content_has_the_same_key_under_all_names():
    other = dataclasses.replace(ENTRY, names=("best_accuracy.pth",))
    assert content_key(other) == content_key(ENTRY) == f"files/{A}.pth"
    assert content_key(Part("a/strange.näme", 1, A)) == f"files/{A}"


def test_the_keys_of_all_contents_are_recognized():
    assert MANIFEST.keys() == {f"files/{A}.pth", f"files/{B}.distcp", f"files/{B}.png"}
    assert all(map(is_content_key, MANIFEST.keys()))
    assert not is_content_key("files/notes.txt")


def test_there_is_no_manifest_in_an_empty_directory(remote):
    assert read_manifest(remote) is None


def test_the_intact_manifest_with_the_highest_number_counts(remote):
    for number in (8, 9):
        data = encode(dataclasses.replace(MANIFEST, number=number))
        remote.create(manifest_key(number), data)
    remote.create(manifest_key(10), data[:-20])
    found = read_manifest(remote)
    assert found is not None
    assert found.number == 9


def test_a_manifest_of_which_a_part_arrives_is_read_again(remote, monkeypatch):
    remote.create(manifest_key(9), encode(dataclasses.replace(MANIFEST, number=9)))
    complete = remote.read
    short = [10, 0]
    monkeypatch.setattr(remote, "read", lambda key: complete(key)[: short.pop() if short else None])
    assert read_manifest(remote).number == 9
    assert short == []


def test_damage_to_all_manifests_is_an_error(remote):
    remote.create(manifest_key(1), b"{}")
    with pytest.raises(CheckpointError):
        read_manifest(remote)


def test_the_checkpoint_that_was_resumed_from_is_listed_first():
    newer = dataclasses.replace(ENTRY, names=("last.pth",), sha256=B, step=2)
    manifest = MirrorManifest(entries=(newer,), resumed_from=ENTRY)
    assert [entry.names for entry in manifest.checkpoints()] == [("epoch_1.pth",), ("last.pth",)]
    assert manifest.newest() == newer
