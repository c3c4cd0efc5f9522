"""Open, replace and sync the files that a run writes beside its checkpoints.

Another user may have placed a link or a pipe under such a name. Nothing here follows a symbolic
link or opens anything but a regular file. Users outside the group cannot read new files.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

from hookline.errors import HooklineError, Suggestion

NEW_FILE_MODE = 0o640
# Errors of network file systems that cannot sync a directory.
NO_DIRECTORY_SYNC = (errno.EINVAL, errno.ENOTSUP)
# O_NONBLOCK: opening a pipe without a reader must fail instead of waiting.
SAFE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def open_to_append(path: Path, newline: str | None = None) -> IO[str]:
    """Open a text file for appending; create it and its directory if necessary.

    A newline is added if a killed process left the last line incomplete.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    size = os.fstat(descriptor).st_size
    if not size:
        sync_directory(path.parent)
    elif os.pread(descriptor, 1, size - 1) != b"\n":
        os.write(descriptor, b"\n")
    return os.fdopen(descriptor, "a", encoding="utf-8", newline=newline)


def open_to_read(path: Path) -> IO[bytes]:
    """Open a file that a run has written.

    Raises:
        FileNotFoundError: If there is no such file.
        HooklineError: If the path is a link or not a regular file.
    """
    return os.fdopen(_open_regular(path, os.O_RDONLY), "rb")


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, split at newlines only, as in JSON lines."""
    with open_to_read(path) as file:
        lines = file.read().decode(errors="replace").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def replace_file(path: Path, content: str | bytes, *, durable: bool = False) -> None:
    """Replace a file in one step.

    Args:
        path: The file. A link under this name is replaced and not followed.
        content: The new content.
        durable: Whether the new content must survive a power cut right after the call.
    """
    data = content.encode() if isinstance(content, str) else content
    partial = path.with_name(f".{path.name}.partial")
    partial.unlink(missing_ok=True)  # left by a process that was killed
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE_FLAGS
    with os.fdopen(os.open(partial, flags, NEW_FILE_MODE), "wb") as file:
        file.write(data)
        if durable:
            sync_file(file)
    os.replace(partial, path)
    if durable:
        sync_directory(path.parent)


def replace_lines(path: Path, lines: Iterable[str]) -> None:
    """Replace the lines of a file in one step, durably."""
    replace_file(path, "".join(f"{line}\n" for line in lines), durable=True)


def sync_file(file: IO[Any]) -> None:
    """Wait until everything written to an open file is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Wait until the names of new and renamed files in a directory are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in NO_DIRECTORY_SYNC:
            raise
    finally:
        os.close(descriptor)


def _open_regular(path: Path, flags: int) -> int:
    try:
        descriptor = os.open(path, flags | SAFE_FLAGS, NEW_FILE_MODE)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK):
            raise _refusal(path, "is a symbolic link, which is not followed") from error
        if error.errno in (errno.ENXIO, errno.EISDIR):
            raise _refusal(path, "is not a regular file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _refusal(path, "is not a regular file")
    return descriptor


def _refusal(path: Path, message: str) -> HooklineError:
    advice = Suggestion(advice="remove it, or use another work directory")
    return HooklineError(message, file=str(path), suggestion=advice)
