"""A store of checkpoints in one directory.

Neither a killed process nor a power cut nor a full disk costs a checkpoint that was saved before.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import platform
import stat
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from hookline.checkpoint.adoption import describe_unlisted
from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import (
    FileSystem,
    HashingWriter,
    check_space,
    discard,
    link_or_copy,
    make_directories,
    open_regular,
    remove_flat_directory,
    save_error,
    set_aside,
    write_temporary,
)
from hookline.checkpoint.formats import (
    WEIGHTS,
    check_plain,
    deserialize,
    is_finite,
    needed_bytes,
    serialize,
)
from hookline.checkpoint.integrity import (
    content_error,
    intact_name,
    integrity_error,
    last_good_name,
    parts_error,
    read_settled_ledger,
)
from hookline.checkpoint.lock import DirectoryLock
from hookline.checkpoint.manifest import (
    EARLIER_RUN,
    Entry,
    Ledger,
    Part,
    find,
    without,
    write_ledger,
)
from hookline.checkpoint.names import (
    HIDDEN,
    JOURNAL,
    LEDGER_TEMPORARIES,
    MANIFEST,
    check_name,
    is_reserved_name,
    is_temporary,
    new_token,
    shard_directory_name,
    temporary_name,
)
from hookline.checkpoint.shards import describe_parts
from hookline.errors import Problem
from hookline.version import __version__

log = logging.getLogger(__name__)

Fetch = Callable[[Entry | Part, HashingWriter], object]


class Latest(NamedTuple):
    """The checkpoint to resume from, and the reasons why newer ones were skipped."""

    entry: Entry | None
    skipped: list[str]


class CheckpointStore:
    """A store of checkpoints in one directory, which may be moved.

    Reading needs no preparation. Call `prepare` before `save`, `remove` and `claim_shards`. The
    store overwrites and deletes only files and directories that its manifest lists.

    Args:
        directory: The directory.
        fs: The operations on files.
        hidden: Hide the manifest from programs that read every `.json` file of the directory.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        fs: FileSystem | None = None,
        hidden: bool = False,
    ) -> None:
        self.directory = Path(directory)
        self._manifest = HIDDEN + MANIFEST if hidden else MANIFEST
        self._journal = HIDDEN + JOURNAL if hidden else JOURNAL
        self._fs = fs or FileSystem()
        self._lock = DirectoryLock(self.directory)
        self._prepared = False
        self._claimed: set[str] = set()  # shard directories that are being written
        # A background save and a removal must not rewrite the manifest at the same time.
        self._mutex = threading.Lock()

    def lock(self) -> None:
        """Lock the directory until `unlock` or the end of the process.

        Raises:
            CheckpointError: If another process holds the lock.
        """
        make_directories(self._fs, self.directory)
        self._lock.acquire()

    def unlock(self) -> None:
        self._lock.release()
        self._prepared = False

    def prepare(self) -> None:
        """Lock the directory, remove leftovers of a killed run, and update the manifest."""
        try:
            self.lock()
            _warn_about_permissions(self.directory)
            ledger = read_settled_ledger(self.directory)
            discard(self._fs, self._leftovers(ledger.token))
            missing = self._missing_names(ledger)
            if missing:
                log.info("%s: no longer present: %s", self.directory, ", ".join(missing))
            ledger = dataclasses.replace(ledger, token=ledger.token or new_token())
            self._claimed.clear()
            self._write_manifest(ledger.with_entries(without(ledger.entries, missing)))
            self._remove_unused_shards()
        except OSError as error:
            message = f"cannot be used for checkpoints: {error.strerror or error}"
            raise CheckpointError(message, file=str(self.directory)) from error
        self._prepared = True

    def begin_new_run(self) -> None:
        """Mark the listed checkpoints as those of an earlier run: this one never resumes from them.

        Otherwise a run that is killed before its first save would continue the earlier one.
        """
        with self._mutex:
            ledger = read_settled_ledger(self.directory)
            entries = []
            for entry in ledger.entries:
                tags = tuple(dict.fromkeys((*entry.tags, EARLIER_RUN)))
                entries.append(dataclasses.replace(entry, tags=tags))
            self._replace_entries(ledger, entries)

    def adopt(self) -> list[Entry]:
        """List copied checkpoints in a manifest that lists none, and return their entries."""
        with self._mutex:
            ledger = read_settled_ledger(self.directory)
            if ledger.entries:
                return []
            found = describe_unlisted(self.directory, ledger.entries)
            self._replace_entries(ledger, found)
        for entry in found:
            names = ", ".join(entry.names)
            log.warning("%s: adopted, although no manifest has its checksum", names)
        return found

    def save(
        self,
        checkpoint: Mapping[str, Any],
        name: str,
        *,
        step: int,
        epoch: int,
        links: Sequence[str] = (),
        metrics: Mapping[str, float] | None = None,
        tags: Sequence[str] = (),
        parts: Sequence[Part] = (),
        finite: bool = True,
    ) -> Entry:
        """Store a checkpoint durably; raise CheckpointError if it cannot be written.

        If its weights are not finite, it gets no links, and `not_finite_` is put before a name that
        recommends a checkpoint or that a good checkpoint has.

        Args:
            links: Further names.
            tags: Words for the manifest, such as `INEXACT`.
            parts: The shards, as `describe_shards` returns them.
            finite: Whether the sharded weights are finite; those in `checkpoint` are checked here.
        """
        names = tuple(dict.fromkeys(check_name(each) for each in (name, *links)))
        plain = check_plain(checkpoint)
        draft = Entry(
            names,
            size=0,
            sha256="",
            step=int(step),
            epoch=int(epoch),
            metrics={key: float(value) for key, value in (metrics or {}).items()},
            finite=finite and is_finite([plain.get(key) for key in WEIGHTS]),
            tags=tuple(tags),
            parts=tuple(parts),
        )
        with self._mutex:
            if not draft.finite:
                draft = self._quarantine(draft)
            return self._write(plain, draft)

    def claim_shards(self, step: int) -> str:
        """Make a directory for the shards of one checkpoint and return its name.

        The manifest lists the directory before it exists. If the run is killed before the
        checkpoint is saved, the next `prepare` removes it.
        """
        name = shard_directory_name(step)
        with self._mutex:
            try:
                self._claim(name)
            except OSError as error:
                raise save_error(self._fs, self.directory / name, error) from error
        return name

    def abandon_shards(self, directory: str) -> None:
        """Delete the shards of a checkpoint that could not be saved."""
        with self._mutex:
            self._claimed.discard(directory)
            self._remove_unused_shards()

    def describe_shards(self, directory: str) -> tuple[Part, ...]:
        """Make the files of a shard directory durable and return them for `save(parts=…)`."""
        return describe_parts(self._fs, self.directory, self.directory / check_name(directory))

    def receive(self, entry: Entry, fetch: Fetch) -> None:
        """Store a checkpoint from another place, if it has the size and the hash of its entry.

        Args:
            entry: Its entry in the manifest of the other place.
            fetch: Writes the content of an entry or one of its parts to a stream.
        """
        with self._mutex:
            try:
                needed = entry.size + sum(part.size for part in entry.parts)
                check_space(self._fs, self.directory / entry.name, needed)
                for directory in dict.fromkeys(part.directory for part in entry.parts):
                    self._claim(directory)
                for part in entry.parts:
                    self._receive_file(self.directory / part.name, part, fetch)
                self._receive_entry(entry, fetch)
            except OSError as error:
                raise save_error(self._fs, self.directory / entry.name, error) from error
            finally:
                self._claimed.difference_update(part.directory for part in entry.parts)
                self._remove_unused_shards()

    def remove(self, *names: str) -> list[str]:
        """Delete checkpoints by name and return the names that were deleted.

        Names that the manifest does not list are ignored. The last good checkpoint is kept even if
        it is named: one is deleted only after another good one was found intact.
        """
        with self._mutex:
            ledger = read_settled_ledger(self.directory)
            known = {name for entry in ledger.entries for name in entry.names}
            doomed = [name for name in dict.fromkeys(names) if name in known]
            spared = last_good_name(self.directory, ledger.entries, doomed)
            if spared is not None:
                log.info("%s: kept, because it is the last good checkpoint", spared)
                doomed.remove(spared)
            if doomed:
                self._delete(doomed, ledger)
            return doomed

    def entries(self) -> list[Entry]:
        """Return the entries of the manifest, oldest first."""
        return list(read_settled_ledger(self.directory).entries)

    def settled_entries(self) -> list[Entry]:
        """Return the entries when no thread is saving; another thread than that may call this."""
        with self._mutex:
            return self.entries()

    def latest(self) -> Entry | None:
        """Return the newest intact checkpoint with finite weights; log the skipped ones."""
        entry, skipped = self.find_latest()
        for text in skipped:
            log.warning("skipped %s", text)
        return entry

    def find_latest(self) -> Latest:
        """Return the newest intact checkpoint with finite weights, and why others were skipped."""
        skipped: list[str] = []
        for entry in reversed(self.entries()):
            if not entry.finite:
                skipped.append(f"{entry.name}: its weights are not finite")
                continue
            if EARLIER_RUN in entry.tags:
                skipped.append(f"{entry.name}: of an earlier run in this directory")
                continue
            if not entry.resumable:
                skipped.append(f"{entry.name}: saved in the middle of an iteration")
                continue
            name = intact_name(self.directory, entry, skipped)
            if name is not None:
                others = [other for other in entry.names if other != name]
                return Latest(dataclasses.replace(entry, names=(name, *others)), skipped)
        return Latest(None, skipped)

    def verify(self, name: str) -> Entry:
        """Return the entry of a checkpoint; raise CheckpointError if its files are damaged."""
        entry = find(name, self.entries())
        problem = integrity_error(self.directory, name, entry)
        if problem is not None:
            raise CheckpointError(problem, file=str(self.directory / name))
        return entry

    def load(self, which: str | Entry) -> dict[str, Any]:
        """Load a checkpoint to the CPU, by its name or its entry.

        Raises:
            CheckpointError: If its files or its parts are damaged, or hold more than plain data.
        """
        if isinstance(which, Entry):
            entry = which
            names = which.names
        else:
            entry = find(which, self.entries())
            names = (which,)
        problems = []
        for name in names:
            path = self.directory / name
            try:
                with open_regular(path) as file:
                    problem = content_error(file, entry) or parts_error(self.directory, entry)
                    if problem is None:
                        file.seek(0)
                        return deserialize(file, str(path))
            except OSError as error:
                problem = error.strerror or str(error)
            problems.append(Problem(problem, file=str(path)))
        raise CheckpointError(problems)

    def _claim(self, name: str) -> None:
        """List a shard directory in the manifest, then make it."""
        assert self._prepared, "call prepare() first"
        ledger = read_settled_ledger(self.directory)
        claimed = dataclasses.replace(ledger, shards=(*ledger.shards, name))
        self._write_manifest(claimed.with_entries(ledger.entries))
        self._fs.create_directory(self.directory / name)
        self._fs.sync_directory(self.directory)
        self._claimed.add(name)

    def _receive_file(self, path: Path, content: Entry | Part, fetch: Fetch) -> Path:
        written = write_temporary(self._fs, path, lambda stream: fetch(content, stream))
        if (written.size, written.sha256) != (content.size, content.sha256):
            discard(self._fs, [path])
            message = "damaged: the received content does not match the checksum"
            raise CheckpointError(message, file=content.name)
        return path

    def _receive_entry(self, entry: Entry, fetch: Fetch) -> None:
        token = read_settled_ledger(self.directory).token
        paths = [self.directory / temporary_name(token) for _ in entry.names]
        temporaries = []
        try:
            temporaries.append(self._receive_file(paths[0], entry, fetch))
            for other in paths[1:]:
                temporaries.append(link_or_copy(self._fs, paths[0], other))
            self._commit(entry, temporaries)
        finally:
            discard(self._fs, temporaries)

    def _write(self, plain: dict[str, Any], draft: Entry) -> Entry:
        assert self._prepared, "call prepare() first"
        path = self.directory / draft.name
        needed = needed_bytes(plain)
        token = read_settled_ledger(self.directory).token
        paths = [self.directory / temporary_name(token) for _ in draft.names]
        temporaries: list[Path] = []
        try:
            check_space(self._fs, path, needed)
            written = write_temporary(self._fs, paths[0], lambda stream: serialize(plain, stream))
            temporaries.append(written.path)
            for other in paths[1:]:
                temporaries.append(link_or_copy(self._fs, written.path, other))
            entry = dataclasses.replace(
                draft,
                size=written.size,
                sha256=written.sha256,
                time=time.time(),
                versions=_versions(),
            )
            self._commit(entry, temporaries)
        except OSError as error:
            raise save_error(self._fs, path, error, needed) from error
        finally:
            discard(self._fs, temporaries)
        return entry

    def _quarantine(self, draft: Entry) -> Entry:
        """Give a checkpoint with non-finite weights a single name that no good one has."""
        name = draft.name
        good = [entry for entry in read_settled_ledger(self.directory).entries if entry.finite]
        if is_reserved_name(name) or any(name in entry.names for entry in good):
            name = f"not_finite_{name}"
        log.warning("the weights are not finite: saved as %s for inspection only", name)
        return dataclasses.replace(draft, names=(name,))

    def _commit(self, entry: Entry, temporaries: list[Path]) -> None:
        """Give temporary files their names, and drop these files from the list.

        The journal is written first: if a name is overwritten, both contents are known.
        """
        ledger = read_settled_ledger(self.directory)
        journal = dataclasses.replace(ledger, number=ledger.number + 1, pending=entry)
        write_ledger(self._fs, self.directory, self._journal, journal)
        self._set_aside_foreign(entry.names, ledger)
        for name in entry.names:
            self._fs.rename(temporaries[0], self.directory / name)
            del temporaries[0]
        self._fs.sync_directory(self.directory)
        settled = (*without(ledger.entries, entry.names), entry)
        self._write_manifest(journal.with_entries(settled))
        self._claimed.difference_update(part.directory for part in entry.parts)
        self._remove_unused_shards()

    def _set_aside_foreign(self, names: Sequence[str], ledger: Ledger) -> None:
        """Rename files that the store did not write and that are in the way of new ones."""
        listed = {name for entry in ledger.entries for name in entry.names}
        for name in names:
            path = self.directory / name
            if name not in listed and os.path.lexists(path):
                kept = set_aside(self._fs, path)
                log.warning("%s: no manifest lists this file; it is now %s", path, kept.name)

    def _replace_entries(self, ledger: Ledger, entries: Sequence[Entry]) -> None:
        assert self._prepared, "call prepare() first"
        if list(entries) == list(ledger.entries):
            return
        try:
            self._write_manifest(ledger.with_entries(tuple(entries)))
        except OSError as error:
            raise save_error(self._fs, self.directory / self._manifest, error) from error

    def _delete(self, names: list[str], ledger: Ledger) -> None:
        """Delete checkpoint files, then their entries.

        The reverse order would leave files that no manifest lists. The journal is written first: if
        this is interrupted, the missing files are known as removed.
        """
        assert self._prepared, "call prepare() first"
        journal = dataclasses.replace(ledger, number=ledger.number + 1, removing=tuple(names))
        try:
            write_ledger(self._fs, self.directory, self._journal, journal)
            for name in names:
                if os.path.lexists(self.directory / name):
                    self._fs.unlink(self.directory / name)
            self._fs.sync_directory(self.directory)
            self._write_manifest(journal.with_entries(without(ledger.entries, names)))
            self._remove_unused_shards()
        except OSError as error:
            message = f"cannot remove {', '.join(names)}: {error.strerror or error}"
            raise CheckpointError(message, file=str(self.directory)) from error

    def _write_manifest(self, ledger: Ledger) -> None:
        write_ledger(self._fs, self.directory, self._manifest, ledger)

    def _leftovers(self, token: str) -> list[Path]:
        """Return the temporary files of the store that a killed process left."""
        leftovers = []
        for path in self.directory.iterdir():
            owned = bool(token) and is_temporary(path.name, token)
            if owned or path.name in LEDGER_TEMPORARIES:
                leftovers.append(path)
        return leftovers

    def _missing_names(self, ledger: Ledger) -> list[str]:
        missing = []
        for entry in ledger.entries:
            for name in entry.names:
                if not (self.directory / name).exists():
                    missing.append(name)
        return missing

    def _remove_unused_shards(self) -> None:
        """Delete the shard directories in the manifest that belong to no checkpoint.

        A failure is logged only: no checkpoint is lost, and the next call tries again.
        """
        for name in read_settled_ledger(self.directory).unused_shards():
            if name in self._claimed:
                continue
            try:
                self._remove_shards(name)
            except OSError as error:
                path = self.directory / name
                log.warning("%s: cannot remove unused shards: %s", path, error.strerror or error)

    def _remove_shards(self, name: str) -> None:
        """Delete a shard directory, then its entry in the manifest."""
        if os.path.lexists(self.directory / name):
            remove_flat_directory(self._fs, self.directory / name)
            self._fs.sync_directory(self.directory)
        ledger = read_settled_ledger(self.directory)
        left = tuple(other for other in ledger.shards if other != name)
        kept = dataclasses.replace(ledger, shards=left)
        self._write_manifest(kept.with_entries(ledger.entries))


def _versions() -> dict[str, str]:
    return {
        "hookline": __version__,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
    }


def _warn_about_permissions(directory: Path) -> None:
    status = directory.stat()
    if status.st_uid != os.geteuid():
        log.warning("%s belongs to another user, who can replace its checkpoints", directory)
    elif status.st_mode & stat.S_IWOTH:
        log.warning("%s is writable for every user; protect it with chmod o-w", directory)
