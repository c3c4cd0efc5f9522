"""Hostile mirrors: their names, sizes and links reach nothing outside, and crash nothing."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hookline.checkpoint import CheckpointStore
from hookline.checkpoint.manifest import checksum
from hookline.checkpoint.mirror_manifest import manifest_key, read_manifest
from hookline.checkpoint.mirror_restore import restore
from hookline.checkpoint.mirror_upload import MirrorUpload
from hookline.cli.main import main
from hookline.errors import ConfigError, HooklineError
from hookline.hooks import CheckpointHook
from hookline.remote import RemoteDirectory
from tests.checkpoint.helpers import saved
from tests.checks import all_failures
from tests.problems import logged

INFINITE = float("inf")
PART = {"name": "shards_1_0a1b2c3d/__0_0.distcp", "size": 1, "sha256": "a" * 64}


class Mirrored:
    """A mirror of a run with one checkpoint and a log, whose manifest can be forged."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "mirror"
        self.remote = RemoteDirectory(f"file://{self.path}")
        store = saved(folder / "run", 1)
        (store.directory / "log.jsonl").write_text("row\n")
        upload = MirrorUpload(self.remote, store, store.directory, lambda size: None)
        upload.run()
        upload.remove_surplus()  # the empty manifest of its beginning
        manifest = read_manifest(self.remote)
        assert manifest is not None
        self.number = manifest.number
        self.file = self.path / manifest_key(self.number)
        self.body = json.loads(self.file.read_bytes())
        del self.body["sha256"]

    def forge(self, **changes: Any) -> None:
        """Change the manifest, with a checksum that fits."""
        body = {**self.body, **changes}
        self.file.write_text(json.dumps({"sha256": checksum(body), **body}))

    def entries(self, **changes: Any) -> dict[str, Any]:
        """Return the change in which the newest checkpoint has other fields."""
        *older, newest = self.body["entries"]
        return {"entries": [*older, {**newest, **changes}]}

    def files(self, name: Any, content: bytes = b"hostile", **changes: Any) -> dict[str, Any]:
        """Return the change in which the mirror has one file."""
        sha256 = hashlib.sha256(content).hexdigest()
        part = {"name": name, "size": len(content), "sha256": sha256, **changes}
        suffix = Path(str(name)).suffix
        (self.path / "files" / f"{sha256}{suffix}").write_bytes(content)
        return {"files": [part]}


@pytest.fixture
def mirrored(tmp_path) -> Mirrored:
    return Mirrored(tmp_path)


def restored(mirrored: Mirrored, folder: Path) -> CheckpointStore:
    """Copy the mirror into a directory."""
    store = CheckpointStore(folder)
    store.prepare()
    try:
        restore(mirrored.remote, store, folder)
    finally:
        store.unlock()
    return store


def hostile_manifests(mirrored: Mirrored) -> dict[str, dict[str, Any]]:
    entries, files = mirrored.entries, mirrored.files
    return {
        "an infinite number": {"number": INFINITE},
        "a number of text": {"number": "x"},
        "a negative number": {"number": -1},
        "a huge number": {"number": 10**30},
        "another number than its name": {"number": mirrored.number + 1},
        "another format": {"format": []},
        "an infinite size of a file": files("a", size=INFINITE),
        "a negative size of a file": files("a", size=-1),
        "a file name that is a number": files(3),
        "a file elsewhere": files("../a"),
        "a hidden file": files(".git/hooks/post-checkout"),
        "a file with an escape sequence": files("a\x1b]0;b\x07"),
        "a file in 1000 directories": files("a/" * 1000 + "b"),
        "a hash that is a path": files("a", sha256="../../a"),
        "files are text": {"files": "abc"},
        "an entry is a number": {"entries": [1]},
        "an infinite step": entries(step=INFINITE),
        "a step of 4000 digits": entries(step=10**4000),
        "a size of 4000 digits": entries(size=10**4000),
        "an infinite time": entries(time=INFINITE),
        "a time that is not a number": entries(time=float("nan")),
        "a metric of 4000 digits": entries(metrics={"accuracy": 10**4000}),
        "a name twice": entries(names=["a.pth", "a.pth"]),
        "a shard of infinite size": entries(parts=[{**PART, "size": INFINITE}]),
        "a shard with a size of text": entries(parts=[{**PART, "size": "x"}]),
        "a shard with a hash that is a number": entries(parts=[{**PART, "sha256": 1}]),
        "a shard in a folder of the user": entries(parts=[{**PART, "name": "precious/file"}]),
        "a checkpoint to keep that is text": {"resumed_from": "x"},
    }


def test_a_hostile_manifest_is_refused_and_nothing_is_written(mirrored, tmp_path, capsys):
    with all_failures() as check:
        for index, (name, changes) in enumerate(hostile_manifests(mirrored).items()):
            with check(name):
                mirrored.forge(**changes)
                folder = tmp_path / f"new{index}"
                (folder / "precious").mkdir(parents=True)
                (folder / "precious" / "file").write_text("precious")
                with pytest.raises(HooklineError):
                    restored(mirrored, folder)
                assert (folder / "precious" / "file").read_text() == "precious"
                assert not list(folder.glob("*.pth"))
                for command in ("ls", "verify", "show"):
                    assert main(["ckpt", command, mirrored.remote.url]) in (1, 2)
                captured = capsys.readouterr()
                assert "Traceback" not in captured.err
                assert "\x1b" not in captured.out + captured.err


def test_files_of_a_mirror_do_not_follow_links_out_of_the_work_directory(
    mirrored, tmp_path, caplog
):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "logs").symlink_to(outside)
    mirrored.forge(**mirrored.files("logs/a.txt"))
    restored(mirrored, folder)
    assert not list(outside.iterdir())
    assert logged(caplog, "logs/a.txt", "is a link")


def test_a_larger_content_than_announced_is_not_downloaded(mirrored, tmp_path):
    changes = mirrored.files("a.bin", b"x")
    (part,) = changes["files"]
    content = mirrored.path / "files" / f"{part['sha256']}.bin"
    with open(content, "wb") as file:
        file.truncate(50 << 20)
    mirrored.forge(**changes)
    received = mirrored.remote.received
    folder = tmp_path / "new"
    restored(mirrored, folder)
    assert not (folder / "a.bin").exists()
    assert mirrored.remote.received - received < 5 << 20


def test_a_huge_manifest_is_not_read(mirrored, tmp_path):
    with open(mirrored.file, "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(HooklineError):
        restored(mirrored, tmp_path / "new")


def test_a_file_with_the_longest_name_is_copied(mirrored, tmp_path):
    name = "n" * 255
    mirrored.forge(**mirrored.files(name))
    store = restored(mirrored, tmp_path / "new")
    assert (store.directory / name).read_bytes() == b"hostile"


@pytest.mark.parametrize("url", ["reference://run::file:///etc/hostname", "zip://a::memory://b"])
def test_chains_of_urls_are_refused_before_they_are_opened(url, tmp_path):
    for request in (
        lambda: CheckpointHook(mirror=url),
        lambda: RemoteDirectory(url).list("manifests"),
        lambda: RemoteDirectory(url).read("a"),
    ):
        with pytest.raises(ConfigError):
            request()


def test_a_forged_mirror_is_not_uploaded_over(mirrored, tmp_path):
    mirrored.forge(number=mirrored.number + 5)
    before = mirrored.file.read_bytes()
    store = CheckpointStore(tmp_path / "run")
    with pytest.raises(HooklineError):
        MirrorUpload(mirrored.remote, store, store.directory, lambda size: None).run()
    assert mirrored.file.read_bytes() == before
    for entry in mirrored.body["entries"]:
        assert (mirrored.path / "files" / f"{entry['sha256']}.pth").exists()
