"""Every operation that makes a file durable, in one place, so that a test can make each of them fail."""

from __future__ import annotations

import errno
import hashlib
import logging
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.names import temporary_name

log = logging.getLogger(__name__)

CHUNK = 1 << 20
FULL = (errno.ENOSPC, errno.EDQUOT)


class FileSystem:
    """The operations of the system that the store is built on; a subclass may record them or make them fail."""

    def create(self, path: Path) -> int:
        """Open a new file for writing: never an existing one, never through a link."""
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

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

    def sync_directory(self, directory: Path) -> None:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network file systems sync no directories
                raise
        finally:
            os.close(descriptor)

    def free_bytes(self, directory: Path) -> int:
        status = os.statvfs(directory)
        return status.f_bavail * status.f_frsize


class Written(NamedTuple):
    """A temporary file that is complete and on the disk, but has not got its name yet."""

    path: Path
    size: int
    sha256: str


class HashingWriter:
    """The stream that a checkpoint is written to; knows the size and hash of all that went through."""

    def __init__(self, fs: FileSystem, descriptor: int) -> None:
        self._fs = fs
        self._descriptor = descriptor
        self._hash = hashlib.sha256()
        self.size = 0
        self.error: BaseException | None = None  # torch.save hides the cause behind "unexpected pos …"

    def write(self, data: bytes | memoryview) -> int:
        left = memoryview(data).cast("B")
        total = len(left)
        self._hash.update(left)
        try:
            while left:
                done = self._fs.write(self._descriptor, left)
                if done <= 0:
                    raise OSError(errno.EIO, "nothing was written")
                left = left[done:]
        except BaseException as error:
            self.error = error
            raise
        self.size += total
        return total

    def flush(self) -> None:
        """There is nothing to flush; torch.save asks for it."""

    def hexdigest(self) -> str:
        return self._hash.hexdigest()


def write_temporary(fs: FileSystem, directory: Path, fill: Callable[[HashingWriter], object]) -> Written:
    """A new synced file in the directory with what `fill` wrote; after a failure there is no such file."""
    path = directory / temporary_name()
    descriptor = fs.create(path)
    try:
        try:
            stream = HashingWriter(fs, descriptor)
            fill(stream)
            fs.sync(descriptor)
            found = os.fstat(descriptor).st_size
            if found != stream.size:
                raise OSError(errno.EIO, f"{stream.size} bytes were written, {found} arrived")
        finally:
            fs.close(descriptor)
    except BaseException:
        discard(fs, [path])
        raise
    return Written(path, stream.size, stream.hexdigest())


def replace_file(fs: FileSystem, path: Path, fill: Callable[[HashingWriter], object]) -> None:
    """Replace a file in one step by what `fill` writes; the caller syncs the directory."""
    written = write_temporary(fs, path.parent, fill)
    try:
        fs.rename(written.path, path)
    except BaseException:
        discard(fs, [written.path])
        raise


def replace_text(path: Path, text: str) -> None:
    """Replace a text file, readable for the group, so that it is there whole or not at all."""
    replace_file(FileSystem(), path, lambda stream: stream.write(text.encode()))
    os.chmod(path, 0o640)


def link_or_copy(fs: FileSystem, source: Path) -> Path:
    """A temporary second name for a file: a hard link, or a synced copy where the file system has none."""
    path = source.parent / temporary_name()
    try:
        fs.link(source, path)
    except OSError as error:
        if error.errno in (*FULL, errno.EIO):
            raise
        log.debug("%s: no hard links here (%s); copying", source.parent, error)
        return write_temporary(fs, source.parent, lambda stream: _copy(source, stream)).path
    return path


def make_directories(fs: FileSystem, directory: Path) -> None:
    """Make a directory and its parents so that a power cut does not take them back."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        fs.make_directory(path)
        fs.sync_directory(path.parent)


def discard(fs: FileSystem, paths: Iterable[Path]) -> None:
    """Remove temporary files as far as that is possible; an error here must not hide the one that led here."""
    for path in paths:
        try:
            fs.unlink(path)
        except OSError as error:
            log.warning("%s: left over, and cannot be removed: %s", path, error)


def hash_stream(stream: BinaryIO) -> tuple[int, str]:
    """Size and sha256 of what is left in a file."""
    digest, size = hashlib.sha256(), 0
    buffer = memoryview(bytearray(CHUNK))
    while count := stream.readinto(buffer):  # type: ignore[attr-defined]
        digest.update(buffer[:count])
        size += count
    return size, digest.hexdigest()


def check_space(fs: FileSystem, path: Path, needed: int) -> None:
    free = fs.free_bytes(path.parent)
    if free < needed:
        raise CheckpointError(_full(path, needed, free))


def failure(fs: FileSystem, path: Path, error: OSError, needed: int = 0) -> CheckpointError:
    """What a failed operation means to the user, in one line."""
    if error.errno in FULL:
        return CheckpointError(_full(path, needed, fs.free_bytes(path.parent)))
    return CheckpointError(f"{path}: not saved: {error.strerror or error}; earlier checkpoints are untouched")


def _full(path: Path, needed: int, free: int) -> str:
    return f"{path}: not saved: the disk is full: {needed:,} bytes needed, {free:,} free; earlier checkpoints are untouched"


def _copy(source: Path, stream: HashingWriter) -> None:
    with open(source, "rb", buffering=0) as file:
        while data := file.read(CHUNK):
            stream.write(data)
