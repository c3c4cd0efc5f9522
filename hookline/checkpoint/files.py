"""Durable file operations.

All of them go through `FileSystem`, so that a test can make each one fail.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.names import temporary_name
from hookline.errors import Suggestion

log = logging.getLogger(__name__)

CHUNK_BYTES = 1 << 20
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
NO_DIRECTORY_SYNC = (errno.EINVAL, errno.ENOTSUP)  # answers of some network file systems
STILL_INTACT = Suggestion(advice="earlier checkpoints are intact")


class FileSystem:
    """The system calls of the store. A subclass may record them or make them fail."""

    def create(self, path: Path) -> int:
        """Open a new file for writing. Never open an existing one or follow a link."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(path, flags, 0o600)

    def write(self, descriptor: int, data: memoryview) -> int:
        return os.write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        os.fsync(descriptor)

    def close(self, descriptor: int) -> None:
        os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def link(self, source: Path, target: Path) -> None:
        os.link(source, target, follow_symlinks=False)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def make_directory(self, path: Path) -> None:
        path.mkdir(exist_ok=True)

    def create_directory(self, path: Path) -> None:
        """Make a new directory that only its owner can enter; fail if the path exists."""
        os.mkdir(path, 0o700)

    def remove_directory(self, path: Path) -> None:
        os.rmdir(path)

    def sync_directory(self, directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in NO_DIRECTORY_SYNC:
                raise
        finally:
            os.close(descriptor)

    def free_bytes(self, directory: Path) -> int:
        status = os.statvfs(directory)
        return status.f_bavail * status.f_frsize


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; raise OSError if it is a pipe or a device, which may never end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def read_regular(path: Path) -> bytes:
    """Return the content of a file, with the errors of `open_regular`."""
    with open_regular(path) as file:
        return file.read()


class Written(NamedTuple):
    """A temporary file that is complete and on disk, but does not have its final name yet."""

    path: Path
    size: int
    sha256: str


class HashingWriter:
    """A stream that computes the size and the hash of the bytes written to it."""

    def __init__(self, fs: FileSystem, descriptor: int) -> None:
        self.size = 0
        # The first error of a write: torch.save hides it behind "unexpected pos …".
        self.error: BaseException | None = None
        self._fs = fs
        self._descriptor = descriptor
        self._hash = hashlib.sha256()

    def write(self, data: bytes | memoryview) -> int:
        left = memoryview(data).cast("B")
        total = len(left)
        self._hash.update(left)
        try:
            while left:
                count = self._fs.write(self._descriptor, left)
                if count <= 0:
                    raise OSError(errno.EIO, "nothing was written")
                left = left[count:]
        except BaseException as error:
            self.error = error
            raise
        self.size += total
        return total

    def flush(self) -> None:
        """Do nothing. torch.save requires this method."""

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


Fill = Callable[[HashingWriter], object]


def write_temporary(fs: FileSystem, path: Path, fill: Fill) -> Written:
    """Create a file, let `fill` write to it, and sync it. After a failure the file is gone."""
    descriptor = fs.create(path)
    try:
        try:
            stream = HashingWriter(fs, descriptor)
            fill(stream)
            fs.sync(descriptor)
            found = os.fstat(descriptor).st_size
            if found != stream.size:
                raise OSError(errno.EIO, f"wrote {stream.size} bytes, but the file has {found}")
        finally:
            fs.close(descriptor)
    except BaseException:
        discard(fs, [path])
        raise
    return Written(path, stream.size, stream.hexdigest())


def replace_file(fs: FileSystem, path: Path, fill: Fill, temporary: Path | None = None) -> None:
    """Replace a file in one step by one that `fill` writes; the caller syncs the directory."""
    written = write_temporary(fs, temporary or path.with_name(temporary_name()), fill)
    try:
        fs.rename(written.path, path)
    except BaseException:
        discard(fs, [written.path])
        raise


def replace_text(path: Path, text: str) -> None:
    """Replace a text file in one step, and make it readable for the group."""
    replace_file(FileSystem(), path, lambda stream: stream.write(text.encode()))
    os.chmod(path, 0o640)


def link_or_copy(fs: FileSystem, source: Path, target: Path) -> Path:
    """Give a file a second name: a hard link, or a synced copy if links are not supported."""
    try:
        fs.link(source, target)
    except OSError as error:
        if error.errno in (*DISK_FULL, errno.EIO):
            raise
        log.debug("%s: no hard links here (%s); copying", source.parent, error)
        write_temporary(fs, target, lambda stream: _copy(source, stream))
    return target


def set_aside(fs: FileSystem, path: Path) -> Path:
    """Rename a file to the first free numbered name, such as `last.1.pth`, and return that."""
    number = 1
    while os.path.lexists(path.with_name(f"{path.stem}.{number}{path.suffix}")):
        number += 1
    target = path.with_name(f"{path.stem}.{number}{path.suffix}")
    fs.rename(path, target)
    return target


def make_directories(fs: FileSystem, directory: Path) -> None:
    """Make a directory and its parents durably."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        fs.make_directory(path)
        fs.sync_directory(path.parent)


def remove_flat_directory(fs: FileSystem, directory: Path) -> None:
    """Delete a directory and the files in it.

    Raises:
        OSError: If it is a link, or if it holds a directory. Nothing below that is touched.
    """
    if directory.is_symlink():
        raise NotADirectoryError(errno.ENOTDIR, "is a link")
    for path in sorted(directory.iterdir()):
        fs.unlink(path)
    fs.remove_directory(directory)


def discard(fs: FileSystem, paths: Iterable[Path]) -> None:
    """Remove temporary files. Log a failure instead of hiding the error that led here."""
    for path in paths:
        try:
            fs.unlink(path)
        except OSError as error:
            log.warning("%s: cannot remove this temporary file: %s", path, error)


def hash_stream(stream: BinaryIO) -> tuple[int, str]:
    """Return the size and the sha256 of the rest of a file."""
    digest = hashlib.sha256()
    size = 0
    buffer = memoryview(bytearray(CHUNK_BYTES))
    while count := stream.readinto(buffer):  # type: ignore[attr-defined]
        digest.update(buffer[:count])
        size += count
    return size, digest.hexdigest()


def check_space(fs: FileSystem, path: Path, needed: int) -> None:
    """Raise CheckpointError if the disk has less free space than needed."""
    free = fs.free_bytes(path.parent)
    if free < needed:
        raise _disk_full_error(path, needed, free)


def save_error(fs: FileSystem, path: Path, error: OSError, needed: int = 0) -> CheckpointError:
    """Return the error for a failed save, in one line."""
    if error.errno in DISK_FULL:
        return _disk_full_error(path, needed, fs.free_bytes(path.parent))
    reason = error.strerror or error
    return CheckpointError(f"not saved: {reason}", file=str(path), suggestion=STILL_INTACT)


def _disk_full_error(path: Path, needed: int, free: int) -> CheckpointError:
    amount = f"{needed:,} bytes needed, {free:,} free" if needed else f"{free:,} bytes free"
    message = f"not saved: the disk is full: {amount}"
    return CheckpointError(message, file=str(path), suggestion=STILL_INTACT)


def _copy(source: Path, stream: HashingWriter) -> None:
    with open(source, "rb", buffering=0) as file:
        while data := file.read(CHUNK_BYTES):
            stream.write(data)
