"""Read a growing file piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PIECE_BYTES = 4 * 1024 * 1024  # read at once, so that a log of any length needs little memory
MARK_BYTES = 64


class Tail:
    """A reader of the lines that were added to a file since the last read.

    `restarted` is True after a read that found another file under the same name, or one that was
    truncated or rewritten. The file is then read from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.restarted = False
        self._forget()

    def _forget(self) -> None:
        self._indexed = 0
        self._file: tuple[int, int] | None = None  # the device and inode
        self._offset = 0
        self._mark = b""  # the last bytes before the offset; another file has others there

    def about(self) -> dict[str, Any]:
        """Return the position for an index."""
        return {"offset": self._offset, "mark": self._mark.hex()}

    def restore(self, about: dict[str, Any]) -> bool:
        """Continue at a position; return False if the file is not the one that it was taken of."""
        offset = int(about["offset"])
        mark = bytes.fromhex(about["mark"])
        if len(mark) != min(offset, MARK_BYTES):
            return False
        try:
            with open(self.path, "rb") as file:
                status = os.fstat(file.fileno())
                file.seek(max(offset - len(mark), 0))
                if file.read(len(mark)) != mark:
                    return False
        except OSError:
            return not offset
        self._file = (status.st_dev, status.st_ino)
        self._offset = self._indexed = offset
        self._mark = mark
        return True

    def unindexed_bytes(self) -> int:
        """Return how much was read since the last index."""
        return self._offset - self._indexed

    def mark_indexed(self) -> None:
        """Remember that an index covers everything that was read."""
        self._indexed = self._offset

    def new_lines(self) -> Iterator[list[bytes]]:
        """Yield complete new lines, many at a time.

        Check `restarted` after the first yield, or after the end if there was none.
        """
        self.restarted = False
        try:
            with open(self.path, "rb") as file:
                about = os.fstat(file.fileno())
                if self._is_another(file.fileno(), about):
                    self.restarted = self._file is not None
                    self._forget()
                self._file = (about.st_dev, about.st_ino)
                file.seek(self._offset)
                rest = b""
                while data := file.read(PIECE_BYTES):
                    lines = (rest + data).split(b"\n")
                    rest = lines.pop()
                    if lines:
                        self._offset = file.tell() - len(rest)
                        self._mark = (b"\n".join(lines[-MARK_BYTES:]) + b"\n")[-MARK_BYTES:]
                        yield lines
        except FileNotFoundError:
            self.restarted = self._file is not None
            self._forget()

    def _is_another(self, descriptor: int, about: os.stat_result) -> bool:
        if self._file != (about.st_dev, about.st_ino) or about.st_size < self._offset:
            return True
        start = self._offset - len(self._mark)
        return os.pread(descriptor, len(self._mark), start) != self._mark
