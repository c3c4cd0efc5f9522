"""A lock that admits one process at a time to a checkpoint directory."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
import weakref
from io import FileIO
from pathlib import Path

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.names import LOCK
from hookline.errors import Suggestion

log = logging.getLogger(__name__)

MAX_OWNER_BYTES = 200
HELD_BY_ANOTHER = (errno.EWOULDBLOCK, errno.EACCES)


class DirectoryLock:
    """A lock on a directory. The system releases it when the process ends, even by a kill."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / LOCK
        self._file: FileIO | None = None
        _locks.add(self)

    def acquire(self) -> None:
        """Take the lock; raise CheckpointError at once if another process holds it."""
        if self._file is not None:
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        file = FileIO(os.open(self.path, flags, 0o600), "r+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = file.read(MAX_OWNER_BYTES).decode(errors="replace").strip()
            file.close()
            if error.errno in HELD_BY_ANOTHER:
                raise self._held_error(owner) from error
            # A file system without locks must not prevent a run.
            directory = self.path.parent
            log.warning("%s: cannot be locked (%s); run one process at a time", directory, error)
            return
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _held_error(self, owner: str) -> CheckpointError:
        return CheckpointError(
            f"in use by {owner or 'another process'}",
            file=str(self.path.parent),
            suggestion=Suggestion(advice="end that process, or use another directory"),
        )


def _release_in_child() -> None:
    """Close the child's copies of locks, so that a data worker cannot outlive the lock's owner.

    The lock itself stays with the parent.
    """
    for lock in _locks:
        lock.release()


_locks: weakref.WeakSet[DirectoryLock] = weakref.WeakSet()
os.register_at_fork(after_in_child=_release_in_child)
