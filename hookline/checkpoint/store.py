"""Checkpoints in a directory: written so that nothing that happens to the process or the machine takes a good one away."""

from __future__ import annotations

import dataclasses
import logging
import os
import platform
import stat
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import torch

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import (
    FileSystem,
    check_space,
    discard,
    failure,
    hash_stream,
    link_or_copy,
    make_directories,
    write_temporary,
)
from hookline.checkpoint.formats import WEIGHTS, check_plain, deserialize, is_finite, needed_bytes, serialize
from hookline.checkpoint.lock import DirectoryLock
from hookline.checkpoint.manifest import Entry, Ledger, Part, find, read_ledger, without, write_ledger
from hookline.checkpoint.names import JOURNAL, MANIFEST, check_name, is_promise, is_temporary
from hookline.checkpoint.shards import describe, remove_unused
from hookline.version import __version__

log = logging.getLogger(__name__)


class Latest(NamedTuple):
    """What a run resumes from, and why not from something newer."""

    entry: Entry | None
    skipped: list[str]


class CheckpointStore:
    """The checkpoints of one directory.

    Reading needs nothing; `prepare()` comes before `save` and `remove`. Names are relative, so the directory may be moved.
    """

    def __init__(self, directory: str | os.PathLike[str], fs: FileSystem | None = None) -> None:
        self.directory = Path(directory)
        self._fs = fs or FileSystem()
        self._lock = DirectoryLock(self.directory)
        self._prepared = False
        self._mutex = threading.Lock()  # a background save and a removal must not both rewrite the manifest

    def lock(self) -> None:
        """Make the directory ours until `unlock()` or the end of the process; CheckpointError if it is another's."""
        make_directories(self._fs, self.directory)
        self._lock.acquire()

    def unlock(self) -> None:
        self._lock.release()
        self._prepared = False

    def prepare(self) -> None:
        """Lock the directory, clear what a crash left over, and bring the manifest up to date."""
        try:
            self.lock()
            _warn_of_others(self.directory)
            discard(self._fs, [path for path in self.directory.iterdir() if is_temporary(path.name)])
            ledger = self._ledger()
            gone = [name for entry in ledger.entries for name in entry.names if not (self.directory / name).exists()]
            if gone:
                log.info("%s: no longer there: %s", self.directory, ", ".join(gone))
            write_ledger(self._fs, self.directory, MANIFEST, Ledger(ledger.number + 1, without(ledger.entries, gone)))
            self._remove_unused_parts()
        except OSError as error:
            raise CheckpointError(f"{self.directory}: cannot be used for checkpoints: {error.strerror or error}") from error
        self._prepared = True

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
        """Store a checkpoint durably under a name and `links`, its further names; CheckpointError if that fails.

        Weights that are not finite get no links, and `not_finite_` before the name of the last, the best, or a good checkpoint.
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
            time=time.time(),
            versions=_versions(),
            tags=tuple(tags),
            parts=tuple(parts),
        )
        with self._mutex:
            return self._write(plain, draft if draft.finite else self._set_aside(draft))

    def describe_shards(self, directory: str) -> tuple[Part, ...]:
        """The files in a directory of shards, made durable, for `save(parts=…)`."""
        return describe(self._fs, self.directory, self.directory / check_name(directory))

    def remove(self, *names: str) -> list[str]:
        """Delete these checkpoints and return those that were there; the last good one is kept even if it is named.

        A checkpoint goes only after another good one was read back and found whole. Files that the store did not write stay.
        """
        with self._mutex:
            ledger = self._ledger()
            known = {name for entry in ledger.entries for name in entry.names}
            doomed = [name for name in dict.fromkeys(names) if name in known]
            spared = self._last_good(ledger.entries, doomed)
            if spared is not None:
                log.info("%s: kept, it is the last good checkpoint", spared)
                doomed.remove(spared)
            if doomed:
                self._delete(doomed, ledger)
            return doomed

    def entries(self) -> list[Entry]:
        """What is stored, oldest first."""
        return list(self._ledger().entries)

    def latest(self) -> Entry | None:
        """The newest checkpoint that is whole and finite; the log says what was skipped on the way to it."""
        entry, skipped = self.find_latest()
        for text in skipped:
            log.warning("skipped %s", text)
        return entry

    def find_latest(self) -> Latest:
        """The newest checkpoint that is whole and finite, or None, and what was skipped on the way to it."""
        skipped: list[str] = []
        for entry in reversed(self.entries()):
            if not entry.finite:
                skipped.append(f"{entry.name}: its weights are not finite")
            elif not entry.resumable:
                skipped.append(f"{entry.name}: saved in the middle of an iteration")
            elif (name := self._whole(entry, skipped)) is not None:
                return Latest(dataclasses.replace(entry, names=(name, *(other for other in entry.names if other != name))), skipped)
        return Latest(None, skipped)

    def verify(self, name: str) -> Entry:
        """The entry of a checkpoint whose size and checksum were found right; else CheckpointError."""
        entry = find(name, self.entries())
        problem = self._problem(name, entry)
        if problem is not None:
            raise CheckpointError(f"{self.directory / name}: {problem}")
        return entry

    def load(self, which: str | Entry) -> dict[str, Any]:
        """The content of a checkpoint, on the CPU; CheckpointError unless its size and checksum, and those of its parts, are right."""
        names = which.names if isinstance(which, Entry) else (which,)
        entry = which if isinstance(which, Entry) else find(which, self.entries())
        problems = []
        for name in names:
            path = self.directory / name
            try:
                with open(path, "rb") as file:
                    problem = _mismatch(file, entry) or self._problem_of_parts(entry)
                    if problem is None:
                        file.seek(0)
                        return deserialize(file, str(path))
            except OSError as error:
                problem = error.strerror or str(error)
            problems.append(f"{path}: {problem}")
        raise CheckpointError("; ".join(problems))

    def _write(self, plain: dict[str, Any], draft: Entry) -> Entry:
        assert self._prepared, "prepare() comes before save()"
        path, needed = self.directory / draft.name, needed_bytes(plain)
        temporaries: list[Path] = []
        try:
            check_space(self._fs, path, needed)
            written = write_temporary(self._fs, self.directory, lambda stream: serialize(plain, stream))
            temporaries.append(written.path)
            for _ in draft.names[1:]:
                temporaries.append(link_or_copy(self._fs, written.path))
            entry = dataclasses.replace(draft, size=written.size, sha256=written.sha256)
            self._commit(entry, temporaries)
        except OSError as error:
            raise failure(self._fs, path, error, needed) from error
        finally:
            discard(self._fs, temporaries)
        return entry

    def _set_aside(self, draft: Entry) -> Entry:
        """A checkpoint whose weights are not finite, under the one name that promises nothing and takes nothing from a good one."""
        taken = {name for entry in self._ledger().entries if entry.finite for name in entry.names}
        name = f"not_finite_{draft.name}" if draft.name in taken or is_promise(draft.name) else draft.name
        log.warning("the weights are not finite: saved as %s, to be looked at, and neither as the last nor as the best", name)
        return dataclasses.replace(draft, names=(name,))

    def _commit(self, entry: Entry, temporaries: list[Path]) -> None:
        """Give temporary files their names. The journal goes first, so that of a name that is overwritten both contents are known."""
        ledger = self._ledger()
        write_ledger(self._fs, self.directory, JOURNAL, Ledger(ledger.number + 1, ledger.entries, entry))
        for name in entry.names:
            self._fs.rename(temporaries[0], self.directory / name)
            del temporaries[0]
        self._fs.sync_directory(self.directory)
        settled = (*without(ledger.entries, entry.names), entry)
        write_ledger(self._fs, self.directory, MANIFEST, Ledger(ledger.number + 2, settled))
        if entry.parts:
            self._remove_unused_parts()

    def _delete(self, names: list[str], ledger: Ledger) -> None:
        """Files first: if this is cut short, the manifest has names without files, and no file is left without a name."""
        assert self._prepared, "prepare() comes before remove()"
        try:
            for name in names:
                if os.path.lexists(self.directory / name):
                    self._fs.unlink(self.directory / name)
            self._fs.sync_directory(self.directory)
            write_ledger(self._fs, self.directory, MANIFEST, Ledger(ledger.number + 1, without(ledger.entries, names)))
            if any(entry.parts for entry in ledger.entries):
                self._remove_unused_parts()
        except OSError as error:
            raise CheckpointError(f"{self.directory}: cannot remove {', '.join(names)}: {error.strerror or error}") from error

    def _ledger(self) -> Ledger:
        """What is known; of a save that was cut short, as much as got its name."""
        ledger = read_ledger(self.directory)
        pending = ledger.pending
        if pending is None:
            return ledger
        arrived = tuple(name for name in pending.names if self._problem(name, pending) is None)
        log.info("the save of %s is not finished; of it there is: %s", pending.name, ", ".join(arrived) or "nothing")
        entries = (*without(ledger.entries, arrived), dataclasses.replace(pending, names=arrived)) if arrived else ledger.entries
        return Ledger(ledger.number, entries)

    def _last_good(self, entries: Sequence[Entry], doomed: Sequence[str]) -> str | None:
        """The one of the doomed names that must stay, because nothing as good would be left."""
        rest = self._best(without(entries, doomed))
        if rest is not None and rest.resumable:
            return None
        best = self._best(entries)
        return None if best is None or (rest is not None and not best.resumable) else best.name

    def _best(self, entries: Sequence[Entry]) -> Entry | None:
        """The newest whole checkpoint, under its first whole name; one to resume from if there is any."""
        for resumable in (True, False):
            for entry in reversed(entries):
                if entry.resumable is resumable and (name := self._whole(entry, [])) is not None:
                    return dataclasses.replace(entry, names=(name,))
        return None

    def _whole(self, entry: Entry, problems: list[str]) -> str | None:
        """The first name under which a checkpoint is whole; what is wrong with those before it is added to `problems`."""
        for name in entry.names:
            problem = self._problem(name, entry)
            if problem is None:
                return name
            problems.append(f"{name}: {problem}")
        return None

    def _problem(self, name: str, entry: Entry) -> str | None:
        try:
            with open(self.directory / name, "rb") as file:
                problem = _mismatch(file, entry)
            return problem or self._problem_of_parts(entry)
        except OSError as error:
            return error.strerror or str(error)

    def _problem_of_parts(self, entry: Entry) -> str | None:
        for part in entry.parts:
            try:
                with open(self.directory / part.name, "rb") as file:
                    problem = _mismatch(file, part)
            except OSError as error:
                problem = error.strerror or str(error)
            if problem is not None:
                return f"{part.name}: {problem}"
        return None

    def _remove_unused_parts(self) -> None:
        remove_unused(self.directory, [part.name for entry in self._ledger().entries for part in entry.parts])


def _mismatch(file: BinaryIO, entry: Entry | Part) -> str | None:
    size = os.fstat(file.fileno()).st_size
    if size != entry.size:
        return f"damaged: {size:,} bytes instead of {entry.size:,}"
    return None if hash_stream(file) == (entry.size, entry.sha256) else "damaged: its content does not match its checksum"


def _versions() -> dict[str, str]:
    return {"hookline": __version__, "torch": str(torch.__version__), "python": platform.python_version()}


def _warn_of_others(directory: Path) -> None:
    status = directory.stat()
    if status.st_uid != os.geteuid():
        log.warning("%s belongs to another user, who can replace the checkpoints in it", directory)
    elif status.st_mode & stat.S_IWOTH:
        log.warning("%s can be written by every user of this machine; chmod o-w protects the checkpoints in it", directory)
