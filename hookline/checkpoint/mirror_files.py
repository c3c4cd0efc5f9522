"""The files of a work directory beside its checkpoints: logs, reports, pictures, configs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from hookline.checkpoint.files import CHUNK_BYTES, open_regular
from hookline.checkpoint.manifest import Part
from hookline.checkpoint.mirror_manifest import check_path
from hookline.checkpoint.names import LEDGER_TEMPORARIES, LEDGERS, is_shard_directory
from hookline.errors import ConfigError

STATUS = "mirror.json"  # the state of the mirror, for people and the report
NOT_MIRRORED = (*LEDGERS, *LEDGER_TEMPORARIES, STATUS)


def find_files(directory: Path, listed: Collection[Path]) -> Iterator[str]:
    """Yield the relative paths of the files to mirror, sorted.

    Hidden and temporary files, shards and links are left out.

    Args:
        directory: The work directory.
        listed: The files of checkpoints, which are mirrored as such.
    """
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if _is_wanted(name))
        for name in sorted(names):
            path = Path(folder, name)
            if not _is_wanted(name) or path in listed or path.is_symlink():
                continue
            relative = path.relative_to(directory).as_posix()
            if _is_safe(relative):
                yield relative


def describe_file(directory: Path, name: str, file: BinaryIO) -> Part:
    """Return the size and hash of an open file, without bytes that are appended later."""
    size = os.fstat(file.fileno()).st_size
    digest = hashlib.sha256()
    left = size
    while left:
        data = file.read(min(left, CHUNK_BYTES))
        if not data:
            break
        digest.update(data)
        left -= len(data)
    file.seek(0)
    return Part(name, size - left, digest.hexdigest())


class FileDescriptions:
    """The sizes and hashes of files that have not changed since they were read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._known: dict[str, tuple[tuple[int, ...], Part]] = {}

    def open(self, name: str) -> tuple[BinaryIO, Part]:
        """Return an open file and its description; raise OSError if it cannot be read."""
        file = open_regular(self.directory / name)
        about = os.fstat(file.fileno())
        stamp = (about.st_ino, about.st_size, about.st_mtime_ns)
        known = self._known.get(name)
        if known is None or known[0] != stamp:
            known = stamp, describe_file(self.directory, name, file)
            self._known[name] = known
        return file, known[1]


def _is_wanted(name: str) -> bool:
    return not (name.startswith(".") or name in NOT_MIRRORED or is_shard_directory(name))


def _is_safe(relative: str) -> bool:
    """Return whether the name can be restored on another machine."""
    try:
        check_path(relative)
    except (ConfigError, ValueError):
        return False
    return True
