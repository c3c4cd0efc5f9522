"""Check the files of a checkpoint against the sizes and checksums in the manifest."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from hookline.checkpoint.files import hash_stream, open_regular
from hookline.checkpoint.manifest import Entry, Ledger, Part, read_ledger, without

log = logging.getLogger(__name__)


def read_settled_ledger(directory: Path) -> Ledger:
    """Read the ledger, and settle a save or a removal that was interrupted.

    Of a save, keep the names whose files are intact. Of a removal, drop those without a file.
    """
    ledger = read_ledger(directory)
    removed = [name for name in ledger.removing if not os.path.lexists(directory / name)]
    ledger = dataclasses.replace(ledger, entries=without(ledger.entries, removed), removing=())
    pending = ledger.pending
    if pending is None:
        return ledger
    arrived = []
    for name in pending.names:
        if integrity_error(directory, name, pending) is None:
            arrived.append(name)
    present = ", ".join(arrived) or "nothing"
    log.info("the save of %s was interrupted; present: %s", pending.name, present)
    entries = ledger.entries
    if arrived:
        entry = dataclasses.replace(pending, names=tuple(arrived))
        entries = (*without(entries, arrived), entry)
    return dataclasses.replace(ledger, entries=entries, pending=None)


def last_good_name(directory: Path, entries: Sequence[Entry], doomed: Sequence[str]) -> str | None:
    """Return the doomed name that must stay, if no checkpoint as good would be left."""
    rest = newest_intact(directory, without(entries, doomed))
    if rest is not None and rest.resumable:
        return None
    best = newest_intact(directory, entries)
    if best is None or (rest is not None and not best.resumable):
        return None
    return best.name


def newest_intact(directory: Path, entries: Sequence[Entry]) -> Entry | None:
    """Return the newest intact checkpoint, with one intact name; a resumable one if any."""
    for resumable in (True, False):
        for entry in reversed(entries):
            if entry.resumable is not resumable:
                continue
            name = intact_name(directory, entry, [])
            if name is not None:
                return dataclasses.replace(entry, names=(name,))
    return None


def intact_name(directory: Path, entry: Entry, problems: list[str]) -> str | None:
    """Return the first name of a checkpoint whose file is intact, or None.

    Args:
        directory: The directory of the checkpoint.
        entry: Its entry in the manifest.
        problems: Receives the problem of each name that is not intact.
    """
    for name in entry.names:
        problem = integrity_error(directory, name, entry)
        if problem is None:
            return name
        problems.append(f"{name}: {problem}")
    return None


def integrity_error(directory: Path, name: str, entry: Entry) -> str | None:
    """Describe the damage to a checkpoint file or one of its parts; None if all are intact."""
    problem = _file_error(directory / name, entry)
    if problem is not None:
        return problem
    return parts_error(directory, entry)


def parts_error(directory: Path, entry: Entry) -> str | None:
    """Describe the damage to the first damaged part of a checkpoint; None if all are intact."""
    for part in entry.parts:
        problem = _file_error(directory / part.name, part)
        if problem is not None:
            return f"{part.name}: {problem}"
    return None


def content_error(file: BinaryIO, expected: Entry | Part) -> str | None:
    """Compare an open file with the size and checksum in the manifest; None if they match."""
    size = os.fstat(file.fileno()).st_size
    if size != expected.size:
        return f"damaged: {size:,} bytes instead of {expected.size:,}"
    if hash_stream(file) != (expected.size, expected.sha256):
        return "damaged: the content does not match the checksum"
    return None


def _file_error(path: Path, expected: Entry | Part) -> str | None:
    try:
        with open_regular(path) as file:
            return content_error(file, expected)
    except OSError as error:
        return error.strerror or str(error)
