"""What the store knows about its files, kept in two files that protect each other.

A save writes the *journal* (everything known so far, and what is about to appear) before it renames a file, and the
*manifest* (the result) after it. So at every moment one of them describes the directory: a process that dies in between
leaves a journal whose pending entry is checked against the files' contents. Both carry a checksum and a number, and the
valid one with the higher number counts; if a flipped bit hits one, the other still knows every file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem, replace_file
from hookline.checkpoint.names import JOURNAL, MANIFEST, check_name
from hookline.errors import suggest

log = logging.getLogger(__name__)

FORMAT = 1
INEXACT = "inexact"  # the tag of a checkpoint to look at, which no run can go on from exactly


@dataclass(frozen=True)
class Part:
    """A file that belongs to a checkpoint besides the one with its name: `shards_12/__0_0.distcp`."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """One saved checkpoint; all its names lead to the same content."""

    names: tuple[str, ...]
    size: int
    sha256: str
    step: int
    epoch: int
    metrics: Mapping[str, float] = field(default_factory=dict)
    finite: bool = True
    time: float = 0.0
    versions: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def resumable(self) -> bool:
        """Whether a run can go on from it, if it is whole."""
        return self.finite and INEXACT not in self.tags


@dataclass(frozen=True)
class Ledger:
    """The content of a manifest or journal, oldest entry first."""

    number: int = 0
    entries: tuple[Entry, ...] = ()
    pending: Entry | None = None


def without(entries: Collection[Entry], names: Collection[str]) -> tuple[Entry, ...]:
    """The entries after these names are gone; an entry without a name is gone too."""
    kept = (dataclasses.replace(entry, names=tuple(name for name in entry.names if name not in names)) for entry in entries)
    return tuple(entry for entry in kept if entry.names)


def find(name: str, entries: Collection[Entry]) -> Entry:
    """The entry of a name; CheckpointError with the nearest one if there is none."""
    for entry in entries:
        if name in entry.names:
            return entry
    raise CheckpointError(f"no checkpoint {name!r}{suggest(name, (known for entry in entries for known in entry.names))}")


def read_ledger(directory: Path) -> Ledger:
    """What is known about a directory; CheckpointError if something was known and cannot be read any more."""
    ledgers, damage = [], []
    for name in (MANIFEST, JOURNAL):
        try:
            ledgers.append(decode((directory / name).read_bytes()))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            damage.append(f"{directory / name}: {error}")
    for text in damage:
        log.warning("%s", text)
    if damage and not ledgers:
        raise CheckpointError(f"{'; '.join(damage)}; name a checkpoint file to load it unchecked, or move these files away to start afresh")
    return max(ledgers, key=lambda ledger: ledger.number, default=Ledger())


def write_ledger(fs: FileSystem, directory: Path, name: str, ledger: Ledger) -> None:
    """Replace the manifest or the journal, durably."""
    data = encode(ledger)
    replace_file(fs, directory / name, lambda stream: stream.write(data))
    fs.sync_directory(directory)


def encode(ledger: Ledger) -> bytes:
    body = {"format": FORMAT, **dataclasses.asdict(ledger)}
    return json.dumps({"sha256": _checksum(body), **body}, indent=1).encode()


def decode(data: bytes) -> Ledger:
    """The ledger in these bytes; ValueError if a single bit of it is not as it was written."""
    try:
        body = json.loads(data)
        checksum = body.pop("sha256")
        version = body.pop("format")
        if checksum != _checksum({"format": version, **body}):
            raise ValueError("the checksum does not match")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"damaged ({error})") from error
    if version != FORMAT:
        raise ValueError(f"written by another release (format {version}, this one reads {FORMAT})")
    pending = body["pending"]
    return Ledger(body["number"], tuple(map(_entry, body["entries"])), None if pending is None else _entry(pending))


def _entry(item: dict[str, Any]) -> Entry:
    """An entry from a file: its checksum proves that the file is whole, not that it is honest, so its names are checked."""
    parts = tuple(Part(_check_part(part["name"]), part["size"], part["sha256"]) for part in item.get("parts", ()))
    return Entry(**{**item, "names": tuple(map(check_name, item["names"])), "tags": tuple(item["tags"]), "parts": parts})


def _check_part(name: str) -> str:
    directory, _, file = name.partition("/")
    return f"{check_name(directory)}/{check_name(file)}"


def _checksum(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
