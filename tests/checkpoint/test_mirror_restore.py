"""Bringing the checkpoints and files of a mirror to a local directory."""

from __future__ import annotations

import functools
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch

from hookline.checkpoint import CheckpointError, load_checkpoint, local_checkpoint
from hookline.checkpoint.manifest import Part
from hookline.checkpoint.mirror_manifest import content_key, read_manifest
from hookline.checkpoint.mirror_restore import content_problem, restore
from hookline.checkpoint.mirror_upload import MirrorUpload
from hookline.checkpoint.store import CheckpointStore
from hookline.errors import ConfigError
from hookline.files import open_to_append
from hookline.remote import RemoteDirectory, RemoteError
from tests.checkpoint.helpers import content, files, flip_bit, listed, opened, saved
from tests.problems import logged


@pytest.fixture
def remote(tmp_path) -> RemoteDirectory:
    """A mirror of a run with three checkpoints and a log."""
    store = saved(tmp_path / "run", 1, 2, 3)
    (store.directory / "log.jsonl").write_text("row\n")
    remote = RemoteDirectory(f"file://{tmp_path}/mirror")
    mirror(remote, store)
    return remote


def mirror(remote: RemoteDirectory, store: CheckpointStore) -> None:
    MirrorUpload(remote, store, store.directory, lambda size: None).run()


def stored(remote: RemoteDirectory, name: str) -> Path:
    """Return the file of the content of a checkpoint in a mirror on a local disk."""
    for entry in read_manifest(remote).entries:
        if name in entry.names:
            return Path(remote.url.removeprefix("file://"), content_key(entry))
    raise KeyError(name)


def weight(store: CheckpointStore, name: str) -> float:
    return float(store.load(name)["state_dict"]["w"][0])


def test_an_empty_directory_receives_everything(remote, tmp_path):
    store = opened(tmp_path / "new")
    assert restore(remote, store, store.directory)
    assert listed(store) == {"epoch_1.pth", "epoch_2.pth", "epoch_3.pth", "last.pth"}
    assert weight(store, "last.pth") == 3.0
    assert (store.directory / "log.jsonl").read_text() == "row\n"
    assert store.latest().step == 3
    assert not restore(remote, store, store.directory)


def test_a_newer_local_checkpoint_is_kept(remote, tmp_path):
    store = opened(tmp_path / "new")
    store.save(content(9), "epoch_9.pth", step=9, epoch=9)
    assert not restore(remote, store, store.directory)
    assert listed(store) == {"epoch_9.pth"}


def test_an_older_local_state_is_completed(remote, tmp_path):
    store = opened(tmp_path / "new")
    store.save(content(1), "last.pth", step=1, epoch=1)
    assert restore(remote, store, store.directory)
    assert store.latest().step == 3


def test_no_other_file_of_a_mirror_replaces_a_local_checkpoint(tmp_path, caplog):
    store = saved(tmp_path / "run", 3)
    (store.directory / "mine.pth").write_text("no checkpoint")
    remote = RemoteDirectory(f"file://{tmp_path}/mirror")
    mirror(remote, store)
    local = opened(tmp_path / "new")
    local.save(content(1), "mine.pth", step=1, epoch=1)
    assert restore(remote, local, local.directory)
    assert weight(local, "mine.pth") == 1.0
    assert logged(caplog, "mine.pth", "not copied")


def test_a_damaged_checkpoint_is_never_used(remote, tmp_path, caplog):
    flip_bit(stored(remote, "epoch_3.pth"))
    store = opened(tmp_path / "new")
    restore(remote, store, store.directory)
    assert store.latest().step == 2
    assert files(store.directory) == {"epoch_1.pth", "epoch_2.pth", "log.jsonl"}
    (warning,) = [record for record in caplog.records if "epoch_3.pth" in record.getMessage()]
    assert warning.name.startswith("hookline.")  # The level of the package's logger holds for it.


def test_a_truncated_or_missing_checkpoint_is_never_used(remote, tmp_path):
    path = stored(remote, "epoch_3.pth")
    path.write_bytes(path.read_bytes()[:100])
    stored(remote, "epoch_2.pth").unlink()
    store = opened(tmp_path / "new")
    restore(remote, store, store.directory)
    assert store.latest().step == 1


def test_a_killed_restore_is_completed_by_the_next_start(remote, tmp_path):
    class Killed(BaseException): ...

    class Dying(RemoteDirectory):
        left = 0

        def download(self, key, write, expected=None):
            if not self.left:
                raise Killed
            self.left -= 1
            super().download(key, write, expected)

    for downloads in range(4):
        folder = tmp_path / f"new-{downloads}"
        dying = Dying(remote.url)
        dying.left = downloads
        store = opened(folder)
        with pytest.raises(Killed):
            restore(dying, store, folder)
        store.unlock()
        store = opened(folder)
        restore(remote, store, folder)
        assert store.latest().step == 3
        assert (folder / "log.jsonl").read_text() == "row\n"
        wanted = {"epoch_1.pth", "epoch_2.pth", "epoch_3.pth", "last.pth", "log.jsonl"}
        assert files(folder) == wanted
        store.unlock()


def test_a_local_file_that_is_in_the_way_is_set_aside(remote, tmp_path):
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / "last.pth").write_text("mine")
    store = opened(folder)
    restore(remote, store, folder)
    assert (folder / "last.1.pth").read_text() == "mine"
    assert weight(store, "last.pth") == 3.0


def test_a_log_that_is_open_already_continues_after_the_restored_rows(remote, tmp_path):
    store = opened(tmp_path / "new")
    with open_to_append(store.directory / "log.jsonl") as log:
        restore(remote, store, store.directory)
        log.write("more\n")
    assert (store.directory / "log.jsonl").read_text() == "row\nmore\n"


def shards(folder: Path) -> CheckpointStore:
    """Return a store with a checkpoint that has a part."""
    store = opened(folder)
    directory = store.claim_shards(4)
    (folder / directory / "__0_0.distcp").write_bytes(b"part")
    parts = store.describe_shards(directory)
    plain = {**content(4), "shards": directory}
    store.save(plain, "last.pth", step=4, epoch=1, parts=parts)
    return store


def test_a_sharded_checkpoint_is_restored_with_its_parts(tmp_path):
    source = shards(tmp_path / "run")
    remote = RemoteDirectory(f"file://{tmp_path}/mirror")
    mirror(remote, source)
    store = opened(tmp_path / "new")
    restore(remote, store, store.directory)
    assert store.latest().parts == source.latest().parts
    store.unlock()
    store.prepare()
    assert store.latest().step == 4, "the shards must survive the next start"


def test_a_sharded_checkpoint_with_a_damaged_part_is_never_used(tmp_path):
    remote = RemoteDirectory(f"file://{tmp_path}/mirror")
    mirror(remote, shards(tmp_path / "run"))
    part = read_manifest(remote).entries[0].parts[0]
    assert isinstance(part, Part)
    Path(tmp_path, "mirror", content_key(part)).write_bytes(b"tarp")
    store = opened(tmp_path / "new")
    restore(remote, store, store.directory)
    assert store.latest() is None
    assert files(store.directory) == set()


def test_a_url_names_a_checkpoint_of_a_mirror(remote):
    with local_checkpoint(f"{remote.url}/epoch_2.pth") as path:
        assert load_checkpoint(path)["meta"]["step"] == 2
    assert not path.exists()


def test_the_url_of_a_mirror_means_its_newest_checkpoint(remote):
    with local_checkpoint(remote.url) as path:
        assert load_checkpoint(path)["meta"]["step"] == 3


def test_a_url_can_name_a_file_without_a_manifest(tmp_path):
    torch.save(content(5), tmp_path / "plain.pth")
    with local_checkpoint(f"file://{tmp_path}/plain.pth") as path:
        assert load_checkpoint(path)["meta"]["step"] == 5


class WebServer(SimpleHTTPRequestHandler):
    """A server with one file, `last.pth`; it denies access to all others, as S3 does."""

    def do_GET(self) -> None:
        if self.path.startswith("/last.pth?"):
            super().do_GET()
        else:
            self.send_error(403)

    def log_message(self, *args: object) -> None: ...


def test_a_url_can_name_a_file_on_a_web_server_that_lists_no_files(tmp_path, monkeypatch, caplog):
    pytest.importorskip("aiohttp")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    torch.save(content(5), tmp_path / "last.pth")
    handler = functools.partial(WebServer, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        with local_checkpoint(f"{url}/last.pth?sig=hunter2") as path:
            assert load_checkpoint(path)["meta"]["step"] == 5
            assert path.name == "last.pth"
        with pytest.raises(RemoteError) as caught, local_checkpoint(f"{url}/other?sig=hunter2"):
            pass
        server.shutdown()
    assert "hunter2" not in caplog.text + str(caught.value)


@pytest.mark.parametrize("url", ["s3://key:hunter2@runs/last.pth", "memory://k:hunter/2@run/a.pth"])
def test_a_url_with_a_password_is_refused_without_showing_it(url):
    with pytest.raises(ConfigError) as caught, local_checkpoint(url):
        pass
    assert "hunter" not in str(caught.value)


def test_a_path_is_left_alone(tmp_path):
    with local_checkpoint(tmp_path / "last.pth") as path:
        assert path == tmp_path / "last.pth"


def test_a_misspelled_name_gets_a_suggestion(remote):
    with pytest.raises(CheckpointError) as caught, local_checkpoint(f"{remote.url}/epoch_22.pth"):
        pass
    assert caught.value.suggestion.nearest == "epoch_2.pth"


def test_a_damaged_checkpoint_cannot_be_fetched(remote):
    flip_bit(stored(remote, "epoch_2.pth"))
    with pytest.raises(CheckpointError), local_checkpoint(f"{remote.url}/epoch_2.pth"):
        pass


def test_damage_in_a_mirror_is_described(remote):
    flip_bit(stored(remote, "epoch_2.pth"))
    problems = {e.name: content_problem(remote, e) for e in read_manifest(remote).entries}
    assert problems["epoch_1.pth"] is None
    assert problems["epoch_2.pth"] is not None
