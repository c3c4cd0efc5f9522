"""Bring a mirror to the state of the local directory: upload, commit a manifest, then delete."""

from __future__ import annotations

import dataclasses
import logging
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import open_regular
from hookline.checkpoint.integrity import content_error
from hookline.checkpoint.manifest import EARLIER_RUN, Entry, Part, without
from hookline.checkpoint.mirror_files import FileDescriptions, find_files
from hookline.checkpoint.mirror_manifest import (
    FILES,
    MirrorManifest,
    content_key,
    decode,
    encode,
    is_content_key,
    list_numbers,
    manifest_key,
    read_manifest,
)
from hookline.checkpoint.store import CheckpointStore
from hookline.remote import RemoteDirectory, RemoteError, shown

log = logging.getLogger(__name__)

MAX_COMMITS = 5


class MirrorTaken(CheckpointError):
    """Another process writes to the same mirror."""


class MirrorUpload:
    """The way of a work directory to its mirror. Used by one thread.

    A pass uploads contents that the mirror does not have, then commits a manifest. If it fails, the
    manifest before it is still complete. Deleting comes after a pass, and may be forbidden.

    Args:
        remote: The mirror.
        store: The checkpoints.
        work_dir: The directory of the other files.
        progress: Called with the number of bytes that were passed to the storage.
    """

    def __init__(
        self,
        remote: RemoteDirectory,
        store: CheckpointStore,
        work_dir: Path,
        progress: Callable[[int], object],
    ) -> None:
        self.resumed_from: str | None = None  # the hash of a checkpoint
        self._remote = remote
        self._store = store
        self._progress = progress
        self._descriptions = FileDescriptions(work_dir)
        self._owner = secrets.token_hex(8)
        self._manifest: MirrorManifest | None = None
        self._uploaded: set[str] = set()  # keys of contents that the mirror has
        self._surplus: set[str] = set()  # keys of contents to delete; some may be deleted already
        self._aborted_uploads = False

    def run(self) -> None:
        """Bring the mirror to the state of the local directory.

        Raises:
            RemoteError: If the storage fails; a later pass continues.
            MirrorTaken: If another process has taken the mirror since the last pass.
        """
        if self._manifest is None:
            self._manifest = self._claim()
        before = self._manifest
        entries = self._upload_checkpoints()
        files = self._upload_files()  # after the checkpoints: the logs are at least as new
        after = dataclasses.replace(
            before,
            entries=(*_of_earlier_runs(before, entries), *entries),
            files=tuple(files),
            resumed_from=self._pinned(before),
        )
        if after != before:
            self._manifest = self._commit(after)

    def remove_surplus(self) -> None:
        """Delete the contents and the older manifests that the last pass has replaced.

        Raises:
            RemoteError: If the storage fails or does not allow it; a later call continues.
        """
        assert self._manifest is not None
        self._surplus |= self._uploaded
        self._surplus -= self._manifest.keys()
        self._uploaded -= self._surplus
        self._remote.remove(sorted(self._surplus))
        self._surplus.clear()
        older = list_numbers(self._remote)[:-1]
        self._remote.remove(manifest_key(number) for number in older)

    def abort_uploads(self) -> None:
        """Discard the parts of uploads that were killed, once.

        Raises:
            RemoteError: If the storage fails or does not allow it; a later call tries again.
        """
        if not self._aborted_uploads:
            self._remote.abort_uploads(FILES)
            self._aborted_uploads = True

    def only_local(self) -> list[str]:
        """Return the names of checkpoints that the mirror does not have."""
        known = set()
        if self._manifest is not None:
            known = {entry.sha256 for entry in self._manifest.entries}
        return [entry.name for entry in self._store.settled_entries() if entry.sha256 not in known]

    def _claim(self) -> MirrorManifest:
        """Become the only process that may write manifests."""
        found = read_manifest(self._remote) or MirrorManifest()
        local = self._store.settled_entries()
        entries = found.entries
        if not any(found.find_content(entry.sha256) for entry in local):
            entries = tuple(map(_mark_earlier, entries))  # This run does not continue theirs.
        try:
            claimed = self._commit(dataclasses.replace(found, owner=self._owner, entries=entries))
        except MirrorTaken as error:  # It wrote a manifest after this process read the newest one.
            raise RemoteError(error.problems) from error
        present = set(filter(is_content_key, self._remote.list(FILES)))
        # A killed upload may have left a part of any other content.
        self._uploaded = present & found.keys()
        self._surplus = present - self._uploaded
        return claimed

    def _upload_checkpoints(self) -> list[Entry]:
        """Upload the checkpoints, the newest first; return the complete ones, oldest first."""
        complete = []
        for entry in reversed(self._store.settled_entries()):
            if self._upload_checkpoint(entry):
                complete.append(entry)
        return complete[::-1]

    def _upload_checkpoint(self, entry: Entry) -> bool:
        """Upload a checkpoint; return False if its files were removed meanwhile."""
        directory = self._store.directory
        if not self._upload_any(entry, [directory / name for name in entry.names]):
            return False
        return all(self._upload_any(part, [directory / part.name]) for part in entry.parts)

    def _upload_any(self, content: Entry | Part, paths: list[Path]) -> bool:
        """Upload a content from the first file that has it; return False if none has."""
        if content_key(content) in self._uploaded:
            return True
        for path in paths:
            try:
                file = open_regular(path)
            except OSError:
                continue
            with file:
                if content_error(file, content) is None:
                    file.seek(0)
                    self._upload(content, file)
                    return True
        return False

    def _upload_files(self) -> list[Part]:
        listed: set[Path] = set()
        for entry in self._store.settled_entries():
            listed.update(self._store.directory / name for name in entry.names)
        uploaded = []
        for name in find_files(self._descriptions.directory, listed):
            try:
                file, part = self._descriptions.open(name)
            except OSError as error:
                log.debug("%s: not mirrored: %s", name, error)
                continue
            with file:
                if content_key(part) not in self._uploaded:
                    self._upload(part, file)
            uploaded.append(part)
        return uploaded

    def _upload(self, content: Entry | Part, file: BinaryIO) -> None:
        key = content_key(content)
        self._remote.upload(key, file, content.size, self._progress)
        self._uploaded.add(key)

    def _pinned(self, before: MirrorManifest) -> Entry | None:
        """Return the checkpoint that this process resumed from, or else an earlier one."""
        if self.resumed_from is None:
            return before.resumed_from
        pinned = before.resumed_from
        if pinned is not None and pinned.sha256 == self.resumed_from:
            return pinned
        return before.find_content(self.resumed_from) or pinned

    def _commit(self, manifest: MirrorManifest) -> MirrorManifest:
        """Create the next manifest and return it.

        It is read back before anything is deleted, because a storage may lose a part of it.
        """
        for _ in range(MAX_COMMITS):
            manifest = dataclasses.replace(manifest, number=manifest.number + 1)
            data = encode(manifest)
            key = manifest_key(manifest.number)
            failure = None
            try:
                self._remote.create(key, data)
            except RemoteError as error:
                failure = error  # The answer may be lost, and the manifest written.
            found = self._remote.read(key)
            if found == data:
                self._check_newest(manifest)
                return manifest
            if found is None:
                raise failure or RemoteError(f"{key} was not written", file=shown(self._remote.url))
            self._check_owner(found)
        raise RemoteError("the storage damages manifests", file=shown(self._remote.url))

    def _check_newest(self, manifest: MirrorManifest) -> None:
        newest = max(list_numbers(self._remote), default=0)
        if newest > manifest.number:
            data = self._remote.read(manifest_key(newest))
            self._check_owner(data or b"")
            raise self._taken()

    def _check_owner(self, data: bytes) -> None:
        """Raise MirrorTaken if another process wrote a manifest; ignore a damaged one."""
        try:
            owner = decode(data).owner
        except ValueError:
            return
        if owner != self._owner:
            raise self._taken()

    def _taken(self) -> MirrorTaken:
        message = "another process writes to this mirror, and this one stops mirroring"
        return MirrorTaken(message, file=shown(self._remote.url))


def _mark_earlier(entry: Entry) -> Entry:
    tags = tuple(dict.fromkeys((*entry.tags, EARLIER_RUN)))
    return dataclasses.replace(entry, tags=tags)


def _of_earlier_runs(manifest: MirrorManifest, entries: list[Entry]) -> tuple[Entry, ...]:
    """Return the checkpoints of earlier runs that only the mirror has."""
    names = [name for entry in entries for name in entry.names]
    contents = {entry.sha256 for entry in entries}
    earlier = []
    for entry in manifest.entries:
        if EARLIER_RUN in entry.tags and entry.sha256 not in contents:
            earlier.append(entry)
    return without(earlier, names)
