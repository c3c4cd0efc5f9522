"""One process at a time in a directory."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import weakref
from io import FileIO
from pathlib import Path

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.files import log
from hookline.checkpoint.names import LOCK


class DirectoryLock:
    """A lock that ends with its process, however that ends."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOCK
        self._file: FileIO | None = None
        _locks.add(self)

    def acquire(self) -> None:
        """Take the lock or raise CheckpointError at once, with the process that has it."""
        if self._file is not None:
            return
        file = FileIO(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "r+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = file.read(200).decode(errors="replace").strip()
            file.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):  # a file system without locks must not stop a run
                log.warning("%s: cannot be locked (%s); make sure that only one process writes there", self.path.parent, error)
                return
            raise CheckpointError(
                f"{self.path.parent}: in use by {owner or 'another process'}; end it, or use another directory"
            ) from error
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _forget_in_child() -> None:
    """Forked data workers must not keep the lock of a main process that was killed."""
    for lock in _locks:
        lock.release()  # closes the child's duplicate only: the lock stays with the parent


_locks: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()
os.register_at_fork(after_in_child=_forget_in_child)
