"""The manifest and the journal: two files that list the checkpoints of a directory.

A save writes the *journal* (all known entries, and the pending one) before it renames a file, and
the *manifest* (the result) afterwards. At every moment one of the two describes the directory. A
process that dies in between leaves a journal whose pending entry can be checked against the files.
A removal does the same with the names that it is about to delete. Both have a checksum and a
number. The intact one with the higher number counts, so that damage to one of them loses nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import FileSystem, read_regular, replace_file
from hookline.checkpoint.names import LEDGERS, check_name, is_shard_directory
from hookline.errors import Problem, Suggestion, suggest

log = logging.getLogger(__name__)

FORMAT = 1
MAX_INTEGER = 2**63 - 1  # of any size or counter
REPAIR = Suggestion(
    advice="load a checkpoint file by its path, or move this file away to start afresh"
)
INEXACT = "inexact"  # tags a checkpoint for inspection, from which no run can resume exactly
EARLIER_RUN = "earlier run"  # tags the checkpoints of a run that was replaced by a new one


@dataclass(frozen=True)
class Part:
    """A further file of a checkpoint, such as `shards_12_0a1b2c3d/__0_0.distcp`."""

    name: str
    size: int
    sha256: str

    @property
    def directory(self) -> str:
        return self.name.partition("/")[0]


@dataclass(frozen=True)
class Entry:
    """One saved checkpoint. All its names lead to the same content."""

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
        """Whether a run can resume from it, provided that its files are intact."""
        return self.finite and INEXACT not in self.tags and EARLIER_RUN not in self.tags


@dataclass(frozen=True)
class Ledger:
    """The content of a manifest or a journal.

    Args:
        number: Counts the writes.
        entries: The checkpoints, oldest first.
        pending: The checkpoint that is about to be renamed to its names.
        removing: The names whose files are about to be deleted.
        token: Marks the temporary files of the store, in their names.
        shards: The shard directories that the store has made. Only these are ever deleted.
    """

    number: int = 0
    entries: tuple[Entry, ...] = ()
    pending: Entry | None = None
    token: str = ""
    shards: tuple[str, ...] = ()
    removing: tuple[str, ...] = ()

    def with_entries(self, entries: tuple[Entry, ...]) -> Ledger:
        """Return the next ledger, with these entries, nothing pending and nothing to remove."""
        return dataclasses.replace(
            self, number=self.number + 1, entries=entries, pending=None, removing=()
        )

    def unused_shards(self) -> list[str]:
        """Return the shard directories of the store that belong to no entry."""
        used = {part.directory for entry in self.entries for part in entry.parts}
        return [name for name in self.shards if name not in used]


def without(entries: Collection[Entry], names: Collection[str]) -> tuple[Entry, ...]:
    """Return the entries without these names. An entry that has no name left is dropped."""
    kept = []
    for entry in entries:
        left = tuple(name for name in entry.names if name not in names)
        if left:
            kept.append(dataclasses.replace(entry, names=left))
    return tuple(kept)


def find(name: str, entries: Collection[Entry]) -> Entry:
    """Return the entry with a name; raise CheckpointError with the nearest name if none has it."""
    for entry in entries:
        if name in entry.names:
            return entry
    known = [other for entry in entries for other in entry.names]
    message = f"there is no checkpoint {name!r}"
    raise CheckpointError(message, parameter=name, suggestion=suggest(name, known))


def read_ledger(directory: Path) -> Ledger:
    """Read the newest intact one of manifests and journals; an empty one if none exists.

    Raises:
        CheckpointError: If there is at least one, and none is intact.
    """
    ledgers = []
    damage = []
    for name in LEDGERS:
        try:
            ledgers.append(decode(read_regular(directory / name)))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            damage.append(Problem(str(error), file=str(directory / name), suggestion=REPAIR))
    for problem in damage:
        log.warning("%s: %s", problem.file, problem.message)
    if damage and not ledgers:
        raise CheckpointError(damage)
    return max(ledgers, key=lambda ledger: ledger.number, default=Ledger())


def write_ledger(fs: FileSystem, directory: Path, name: str, ledger: Ledger) -> None:
    """Replace the manifest or the journal durably."""
    data = encode(ledger)
    temporary = directory / f"{name}.tmp"
    if os.path.lexists(temporary):  # left by a killed process: the lock admits one at a time
        fs.unlink(temporary)
    replace_file(fs, directory / name, lambda stream: stream.write(data), temporary)
    fs.sync_directory(directory)


def encode(ledger: Ledger) -> bytes:
    body = {"format": FORMAT, **dataclasses.asdict(ledger)}
    return json.dumps({"sha256": checksum(body), **body}, indent=1).encode()


def decode(data: bytes) -> Ledger:
    """Return the ledger in these bytes; raise ValueError if a single bit of them has changed."""
    body = intact_body(data)
    version = body.pop("format")
    if version != FORMAT:
        raise ValueError(f"written by another release (format {version}, this one reads {FORMAT})")
    try:
        return _decode_body(body)
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"malformed ({type(error).__name__}: {error})") from error


def intact_body(data: bytes) -> dict[str, Any]:
    """Return the content without the checksum; raise ValueError if that does not match."""
    try:
        body: dict[str, Any] = json.loads(data)
        expected = body.pop("sha256")
        if expected != checksum({"format": body["format"], **body}):
            raise ValueError("the checksum does not match")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"damaged ({error})") from error
    return body


def _decode_body(body: Mapping[str, Any]) -> Ledger:
    pending = body["pending"]
    return Ledger(
        number=check_number(body),
        entries=tuple(decode_entry(item) for item in body["entries"]),
        pending=None if pending is None else decode_entry(pending),
        token=str(body.get("token", "")),
        shards=tuple(_check_shard_directory(name) for name in body.get("shards", ())),
        removing=tuple(check_name(name) for name in body.get("removing", ())),
    )


def decode_entry(item: dict[str, Any]) -> Entry:
    """Return an entry from a file.

    The checksum proves that the file is intact, not that it is honest: all names are checked.
    """
    for key, fits in ENTRY_FORMS.items():
        if key in item and not fits(item[key]):
            raise ValueError(f"{key!r} of an entry has a wrong form")
    names = tuple(check_name(name) for name in item["names"])
    parts = []
    for part in item.get("parts", ()):
        parts.append(decode_part(part, _check_part_name))
    return Entry(**{**item, "names": names, "tags": tuple(item["tags"]), "parts": tuple(parts)})


def decode_part(item: Mapping[str, Any], check: Callable[[str], str]) -> Part:
    """Return a further file from a manifest; `check` returns its name or raises ValueError."""
    if not _is_size(item["size"]) or not isinstance(item["sha256"], str):
        raise ValueError("the size or the hash of a file has a wrong form")
    return Part(check(item["name"]), item["size"], item["sha256"])


def check_number(body: Mapping[str, Any]) -> int:
    """Return the number of a manifest; raise ValueError if it has a wrong form."""
    if not _is_size(body["number"]):
        raise ValueError("the number has a wrong form")
    return int(body["number"])


def _is_int(value: Any) -> bool:
    return type(value) is int and abs(value) <= MAX_INTEGER


def _is_size(value: Any) -> bool:
    return _is_int(value) and value >= 0


def _is_number(value: Any) -> bool:
    return type(value) is float or _is_int(value)


def _is_time(value: Any) -> bool:
    return _is_number(value) and math.isfinite(value)


def _is_names(value: Any) -> bool:
    return _is_str_list(value) and 0 < len(value) == len(set(value))


def _is_str_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_metrics(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_number, value.values()))


ENTRY_FORMS: dict[str, Callable[[Any], bool]] = {
    "names": _is_names,
    "size": _is_size,
    "sha256": lambda value: isinstance(value, str),
    "step": _is_int,
    "epoch": _is_int,
    "metrics": _is_metrics,
    "finite": lambda value: isinstance(value, bool),
    "time": _is_time,
    "versions": lambda value: isinstance(value, dict),
    "tags": _is_str_list,
    "parts": lambda value: isinstance(value, list),
}


def _check_part_name(name: str) -> str:
    directory, _, file = name.partition("/")
    return f"{_check_shard_directory(directory)}/{check_name(file)}"


def _check_shard_directory(name: str) -> str:
    if not is_shard_directory(name):
        raise ValueError(f"{name!r} is not the name of a shard directory")
    return name


def checksum(body: Mapping[str, Any]) -> str:
    """Return the checksum of the content of a manifest."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
