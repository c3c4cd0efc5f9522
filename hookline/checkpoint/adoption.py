"""Find checkpoints that no manifest lists, such as files that were copied without it.

A checkpoint of a run describes itself: its `meta` has the counters and the release that wrote it.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import hash_stream
from hookline.checkpoint.formats import WEIGHTS, deserialize, is_finite
from hookline.checkpoint.manifest import Entry
from hookline.checkpoint.names import is_temporary
from hookline.checkpoint.trainable import TAG, is_partial

log = logging.getLogger(__name__)

SUFFIXES = (".pth", ".pt", ".ckpt")
INSPECTION_FILE = "exception.pth"  # Release 0.1.0 marked it in the manifest only.


def unlisted_files(directory: Path, entries: Collection[Entry]) -> list[Path]:
    """Return the files that could be checkpoints by their names and are in no entry."""
    if not directory.is_dir():
        return []
    listed = {name for entry in entries for name in entry.names}
    found = []
    for path in sorted(directory.iterdir()):
        if path.suffix not in SUFFIXES or path.name in listed:
            continue
        if is_temporary(path.name) or not path.name.isprintable():
            continue
        if path.is_file() and not path.is_symlink():
            found.append(path)
    return found


def describe_unlisted(directory: Path, entries: Collection[Entry]) -> list[Entry]:
    """Return entries for the unlisted files that a run can resume from, oldest first.

    Every file is loaded, so that a damaged one is noticed. Files with the same content are one
    entry. Files that are not complete checkpoints of a run are ignored.
    """
    found: dict[str, Entry] = {}
    for path in unlisted_files(directory, entries):
        try:
            entry = _describe(path)
        except (CheckpointError, OSError) as error:
            log.warning("%s: ignored: %s", path, error)
            continue
        if entry is None:
            continue
        known = found.get(entry.sha256)
        if known is not None:
            entry = dataclasses.replace(entry, names=(*known.names, *entry.names))
        found[entry.sha256] = entry
    return sorted(found.values(), key=lambda entry: (entry.step, entry.epoch, entry.time))


def _describe(path: Path) -> Entry | None:
    """Return the entry for a file, from its content; None if no run can resume from it."""
    with open(path, "rb") as file:
        size, checksum = hash_stream(file)
        file.seek(0)
        checkpoint = deserialize(file, str(path))
    reason = _rejection_reason(path.name, checkpoint)
    if reason is not None:
        log.info("%s: ignored: %s", path, reason)
        return None
    meta = checkpoint["meta"]
    return Entry(
        (path.name,),
        size,
        checksum,
        step=meta["iter"],
        epoch=meta["epoch"],
        metrics=_numbers(meta.get("metrics")),
        finite=is_finite([checkpoint.get(key) for key in WEIGHTS]),
        time=_numbers(meta).get("time", 0.0),
        versions={"hookline": meta["versions"]["hookline"]},
        tags=("adopted", TAG) if is_partial(checkpoint) else ("adopted",),
    )


def _rejection_reason(name: str, checkpoint: Mapping[str, Any]) -> str | None:
    """Return why no run can resume from a checkpoint; None if one can."""
    meta = checkpoint.get("meta")
    counters = ("iter", "epoch")
    if not isinstance(meta, Mapping) or any(type(meta.get(each)) is not int for each in counters):
        return "not a checkpoint of a run"
    versions = meta.get("versions")
    if not isinstance(versions, Mapping) or not isinstance(versions.get("hookline"), str):
        return "not a checkpoint of Hookline"
    if not isinstance(checkpoint.get("state_dict"), Mapping):
        return "without weights"
    if "shards" in checkpoint:
        return "sharded: copy its directory with checkpoints.json"
    if name == INSPECTION_FILE or meta.get("inexact"):
        return "saved in the middle of an iteration"
    return None


def _numbers(values: Any) -> dict[str, float]:
    """Return the numbers of a mapping from a file, which may hold anything."""
    if not isinstance(values, Mapping):
        return {}
    numbers = {}
    for key, value in values.items():
        if isinstance(key, str) and type(value) in (int, float):
            numbers[key] = float(value)
    return numbers
