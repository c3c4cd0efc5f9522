"""The manifest of a mirror: the checkpoints and files of a run in object storage.

Each state of the mirror is a file `manifests/000000012.json`, which is created and never changed.
The intact one with the highest number counts. Contents are in `files/<sha256>.<suffix>`: no upload
overwrites a content that a manifest lists, and a content with several names is stored once.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.manifest import (
    Entry,
    Part,
    check_number,
    checksum,
    decode_entry,
    decode_part,
    intact_body,
    without,
)
from hookline.checkpoint.names import check_name
from hookline.remote import RemoteDirectory, shown

FORMAT = 1
MANIFESTS = "manifests"
FILES = "files"
MAX_DEPTH = 20  # directories above a file
MAX_LISTINGS = 5
MAX_READS = 3  # of one manifest


@dataclass(frozen=True)
class MirrorManifest:
    """One state of a mirror.

    Args:
        number: Counts the states.
        owner: Random text of the process that wrote it.
        entries: The checkpoints, oldest first.
        files: The other files of the work directory.
        resumed_from: The checkpoint from which the last process resumed. Retention keeps it.
    """

    number: int = 0
    owner: str = ""
    entries: tuple[Entry, ...] = ()
    files: tuple[Part, ...] = ()
    resumed_from: Entry | None = None

    def checkpoints(self) -> list[Entry]:
        """Return all checkpoints, oldest first, with the one that the last process resumed from."""
        if self.resumed_from is None or self.find_content(self.resumed_from.sha256) is not None:
            return list(self.entries)
        names = [name for entry in self.entries for name in entry.names]
        return [*without([self.resumed_from], names), *self.entries]

    def find_content(self, sha256: str) -> Entry | None:
        """Return the checkpoint with a content, if the manifest lists it."""
        for entry in self.entries:
            if entry.sha256 == sha256:
                return entry
        return None

    def newest(self) -> Entry | None:
        """Return the newest checkpoint that a run can resume from."""
        for entry in reversed(self.entries):
            if entry.resumable:
                return entry
        return None

    def keys(self) -> set[str]:
        """Return the keys of all contents."""
        return {content_key(content) for content in self.contents()}

    def contents(self) -> list[Entry | Part]:
        """Return all checkpoints with their shards, and all other files."""
        entries = list(self.entries)
        if self.resumed_from is not None:
            entries.append(self.resumed_from)
        return [*self.files, *entries, *(part for entry in entries for part in entry.parts)]


def content_key(content: Entry | Part) -> str:
    """Return the key of the content of a checkpoint, a shard or another file."""
    suffix = PurePosixPath(content.name).suffix
    if re.fullmatch(r"\.[A-Za-z0-9]{1,12}", suffix) is None:
        suffix = ""
    return f"{FILES}/{content.sha256}{suffix}"


def is_content_key(key: str) -> bool:
    """Return whether a key is one that `content_key` makes."""
    return re.fullmatch(rf"{FILES}/[0-9a-f]{{64}}(\.[A-Za-z0-9]{{1,12}})?", key) is not None


def manifest_key(number: int) -> str:
    return f"{MANIFESTS}/{number:09d}.json"


def list_numbers(remote: RemoteDirectory) -> list[int]:
    """Return the numbers of all manifests, in ascending order."""
    numbers = []
    for key in remote.list(MANIFESTS):
        match = re.fullmatch(rf"{MANIFESTS}/(\d{{9,18}})\.json", key)
        if match is not None:
            numbers.append(int(match[1]))
    return sorted(numbers)


def read_manifest(remote: RemoteDirectory) -> MirrorManifest | None:
    """Return the newest intact manifest; None if there is none.

    Raises:
        RemoteError: If the storage fails.
        CheckpointError: If there are manifests, and none is intact.
    """
    damage = ""
    for _ in range(MAX_LISTINGS):
        numbers = list_numbers(remote)
        for number in reversed(numbers):
            try:
                manifest = _read_numbered(remote, number)
            except ValueError as error:
                damage = f"manifest {number}: {error}"
                continue
            if manifest is not None:
                return manifest
            # A newer one has replaced it since they were listed.
        if not numbers:
            return None
        if damage:
            break
    raise CheckpointError(damage or "the manifest changes too fast", file=shown(remote.url))


def _read_numbered(remote: RemoteDirectory, number: int) -> MirrorManifest | None:
    """Return a manifest; None if the file was deleted.

    A damaged one is read again: the storage may have sent a part of an intact file.
    """
    damage = ValueError()
    for _ in range(MAX_READS):
        data = remote.read(manifest_key(number))
        if data is None:
            return None
        try:
            return _decode_numbered(data, number)
        except ValueError as error:
            damage = error
    raise damage


def _decode_numbered(data: bytes, number: int) -> MirrorManifest:
    manifest = decode(data)
    if manifest.number != number:  # Its successor would not be the newest one.
        raise ValueError(f"its content has the number {manifest.number}")
    return manifest


def encode(manifest: MirrorManifest) -> bytes:
    body = {"format": FORMAT, **dataclasses.asdict(manifest)}
    return json.dumps({"sha256": checksum(body), **body}, indent=1).encode()


def decode(data: bytes) -> MirrorManifest:
    """Return the manifest in these bytes; raise ValueError if a single bit of them has changed."""
    body = intact_body(data)
    if body["format"] != FORMAT:
        raise ValueError(f"written by another release (format {body['format']})")
    try:
        return _decode_body(body)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"malformed ({type(error).__name__}: {error})") from error


def _decode_body(body: Mapping[str, Any]) -> MirrorManifest:
    """Return a manifest from a file, which may not be honest: all names are checked."""
    manifest = MirrorManifest(
        number=check_number(body),
        owner=str(body["owner"]),
        entries=tuple(decode_entry(item) for item in body["entries"]),
        files=tuple(decode_part(item, check_path) for item in body["files"]),
        resumed_from=None if body["resumed_from"] is None else decode_entry(body["resumed_from"]),
    )
    for content in manifest.contents():
        if re.fullmatch(r"[0-9a-f]{64}", content.sha256) is None:
            raise ValueError("'sha256' has a wrong form")
    return manifest


def check_path(name: str) -> str:
    """Return a relative path that cannot lead out of its directory.

    Raises:
        ConfigError: If it can, or if it has a name that the store uses itself.
        ValueError: If it is hidden, as no mirrored file is, or has too many directories.
    """
    parts = name.split("/")
    if len(parts) > MAX_DEPTH:
        raise ValueError("too many directories in the name of a file")
    if any(part.startswith(".") for part in parts):
        raise ValueError("the name of a file is hidden")
    return "/".join(check_name(part) for part in parts)
