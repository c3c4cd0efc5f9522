"""Bring the checkpoints and files of a mirror to a local directory."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import (
    FileSystem,
    HashingWriter,
    make_directories,
    open_regular,
    save_error,
    write_temporary,
)
from hookline.checkpoint.manifest import EARLIER_RUN, Entry, Part, find
from hookline.checkpoint.mirror_files import describe_file
from hookline.checkpoint.mirror_manifest import MirrorManifest, content_key, read_manifest
from hookline.checkpoint.names import check_name
from hookline.checkpoint.store import CheckpointStore
from hookline.files import sync_file
from hookline.remote import (
    RemoteDirectory,
    RemoteFileMissing,
    is_read_only,
    is_url,
    shown,
    split_url,
)

log = logging.getLogger(__name__)

CONFIG = "config.yaml"  # of this process, which wrote it before the run began


def restore(
    remote: RemoteDirectory,
    store: CheckpointStore,
    work_dir: Path,
    note_progress: Callable[[], object] = lambda: None,
) -> bool:
    """Copy a mirror to a local directory, if its newest checkpoint is newer than the local ones.

    The newest checkpoint comes last. If this fails or is killed before that, the next call copies
    the rest.

    Args:
        remote: The mirror.
        store: The local checkpoints.
        work_dir: The directory of the other files.
        note_progress: Called after each file and checkpoint.

    Returns:
        Whether the mirror was copied.
    """
    manifest = read_manifest(remote)
    newest = None if manifest is None else manifest.newest()
    local = store.find_latest().entry
    if manifest is None or newest is None:
        return False
    if local is not None and (local.step, local.time) >= (newest.step, newest.time):
        return False
    log.info("%s: copying the checkpoints up to iteration %d", shown(remote.url), newest.step)
    own = _files_of(store)
    for part in manifest.files:
        if part.name == CONFIG and (work_dir / CONFIG).exists():
            continue
        if work_dir.resolve() / part.name in own:
            log.warning("%s: not copied from the mirror: it is a checkpoint here", part.name)
            continue
        if not _is_local(part, work_dir) and _restore_file(remote, part, work_dir):
            note_progress()
    known = {entry.sha256 for entry in store.entries()}
    for entry in _newest_last(manifest, newest):
        if entry.sha256 not in known and _restore_checkpoint(remote, entry, store):
            note_progress()
    return True


@contextlib.contextmanager
def local_checkpoint(path: str | Path) -> Iterator[Path]:
    """Yield the path of a local copy of a checkpoint that a URL names; any other path unchanged.

    The URL names a file, or a mirror, which means its newest good checkpoint. Web servers have no
    mirrors.
    """
    if not is_url(path):
        yield Path(path)
        return
    with tempfile.TemporaryDirectory(prefix="hookline-fetch-") as folder:
        yield fetch_checkpoint(str(path), Path(folder))


def fetch_checkpoint(url: str, folder: Path) -> Path:
    """Download a checkpoint into an empty directory and return its path.

    Raises:
        CheckpointError: If the mirror does not list it, or if it is damaged.
        RemoteError: If the storage fails.
    """
    if is_read_only(url):
        return _fetch_file(url, folder)
    remote = RemoteDirectory(url)
    manifest = read_manifest(remote)
    if manifest is not None:
        entry = manifest.newest()
        if entry is None:
            raise CheckpointError("no good checkpoint in this mirror", file=shown(url))
        return _fetch_entry(remote, entry, entry.name, folder)
    directory, name = split_url(url)
    remote = RemoteDirectory(directory)
    manifest = read_manifest(remote)
    if manifest is not None:
        return _fetch_entry(remote, find(name, manifest.checkpoints()), name, folder)
    return _fetch_file(url, folder)


def content_problem(remote: RemoteDirectory, entry: Entry) -> str | None:
    """Describe the damage to a checkpoint in a mirror; None if it is intact."""
    contents: list[Entry | Part] = [entry, *entry.parts]
    for content in contents:
        digest = hashlib.sha256()
        try:
            remote.download(content_key(content), digest.update, content.size)
        except RemoteFileMissing:
            return "damaged: its content is missing"
        if digest.hexdigest() != content.sha256:
            return "damaged: the content does not match the checksum"
    return None


def _fetch_file(url: str, folder: Path) -> Path:
    directory, name = split_url(url)
    remote = RemoteDirectory(directory)
    path = folder / check_name(name.partition("?")[0])  # A query may have a secret.
    write_temporary(FileSystem(), path, lambda stream: remote.download(name, stream.write))
    return path


def _fetch_entry(remote: RemoteDirectory, entry: Entry, name: str, folder: Path) -> Path:
    store = CheckpointStore(folder)
    store.prepare()
    try:
        _receive(remote, entry, store)
    finally:
        store.unlock()
    return folder / name


def _receive(remote: RemoteDirectory, entry: Entry, store: CheckpointStore) -> None:
    def fetch(content: Entry | Part, stream: HashingWriter) -> None:
        remote.download(content_key(content), stream.write, content.size)

    store.receive(entry, fetch)


def _files_of(store: CheckpointStore) -> set[Path]:
    """Return the files of the local checkpoints, which no other file of a mirror may replace."""
    files = set()
    for entry in store.entries():
        for name in (*entry.names, *(part.name for part in entry.parts)):
            files.add(store.directory.resolve() / name)
    return files


def _newest_last(manifest: MirrorManifest, newest: Entry) -> list[Entry]:
    """Return the checkpoints to restore: those of the run itself, up to the newest one."""
    older = []
    for entry in manifest.entries:
        if EARLIER_RUN not in entry.tags and entry is not newest:
            older.append(entry)
    return [*older, newest]


def _restore_checkpoint(remote: RemoteDirectory, entry: Entry, store: CheckpointStore) -> bool:
    """Copy a checkpoint; return False for a damaged one, because there may be an older one."""
    try:
        _receive(remote, entry, store)
    except (CheckpointError, RemoteFileMissing) as error:
        log.warning("%s: not copied from the mirror: %s", entry.name, error)
        return False
    return True


def _is_local(part: Part, work_dir: Path) -> bool:
    """Return whether an earlier attempt has copied a file."""
    try:
        with open_regular(work_dir / part.name) as file:
            return describe_file(work_dir, part.name, file) == part
    except OSError:
        return False


def _restore_file(remote: RemoteDirectory, part: Part, work_dir: Path) -> bool:
    """Copy a file beside the checkpoints; return False for a damaged one."""
    fs = FileSystem()
    path = work_dir / part.name
    link = _link_above(path, work_dir)
    if link is not None:
        log.warning("%s: not copied from the mirror, because %s is a link", part.name, link)
        return False
    partial = path.with_name(f".{part.sha256[:16]}.partial")
    try:
        make_directories(fs, path.parent)
        partial.unlink(missing_ok=True)  # left by a process that was killed
        written = write_temporary(
            fs, partial, lambda stream: remote.download(content_key(part), stream.write, part.size)
        )
        if (written.size, written.sha256) != (part.size, part.sha256):
            fs.unlink(partial)
            log.warning("%s: damaged in the mirror, and not copied", part.name)
            return False
        if path.exists():
            _overwrite(path, partial)
        else:
            fs.rename(partial, path)
            fs.sync_directory(path.parent)
    except RemoteFileMissing as error:
        log.warning("%s: not copied from the mirror: %s", part.name, error)
        return False
    except OSError as error:
        raise save_error(fs, path, error) from error
    return True


def _link_above(path: Path, work_dir: Path) -> Path | None:
    """Return a directory between the work directory and a path that is a link to elsewhere."""
    for name in path.relative_to(work_dir).parents:
        folder = work_dir / name
        if folder != work_dir and folder.is_symlink():
            return folder
    return None


def _overwrite(path: Path, source: Path) -> None:
    """Move the content of a file into an existing one, which a logger may have open already.

    If this is killed, the next start does it again, because the newest checkpoint is not there yet.
    """
    flags = os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(source, "rb") as content, os.fdopen(os.open(path, flags), "wb") as target:
        target.truncate(0)
        shutil.copyfileobj(content, target)
        sync_file(target)
    source.unlink()
