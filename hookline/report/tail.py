"""Read a growing file piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PIECE_BYTES = 4 * 1024 * 1024  # read at once, so that a log of any length needs little memory
MARK_BYTES = 32


class Tail:
    """Reads the lines that were added to a file since the last read.

    `restarted` is True after a read that found another file under the same name, or one that was
    truncated or rewritten. The file is then read from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.restarted = False
        self._forget()

    def _forget(self) -> None:
        self._file: tuple[int, int] | None = None  # the device and inode
        self._offset = 0
        self._mark = b""  # the last bytes before the offset; another file has others there

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
                        self._mark = (lines[-1] + b"\n")[-MARK_BYTES:]
                        yield lines
        except FileNotFoundError:
            self.restarted = self._file is not None
            self._forget()

    def _is_another(self, descriptor: int, about: os.stat_result) -> bool:
        if self._file != (about.st_dev, about.st_ino) or about.st_size < self._offset:
            return True
        start = self._offset - len(self._mark)
        return os.pread(descriptor, len(self._mark), start) != self._mark
