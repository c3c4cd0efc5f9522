"""A file that grows, read piece by piece."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

PIECE = 4 * 1024 * 1024  # bytes read at once, so that a log of any length needs little memory


class Tail:
    """The whole lines that a file has got since it was last asked; `restarted` says that it is not the file it was."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.restarted = False
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self._mark = b""  # the last bytes that were read, which a file that was written anew does not have there

    def pieces(self) -> Iterator[list[bytes]]:
        """New lines, many at a time. Look at `restarted` after the first of them, or after the end."""
        self.restarted = False
        try:
            with open(self.path, "rb") as file:
                about = os.fstat(file.fileno())
                if self._is_another(file.fileno(), about):
                    self.restarted = self._file is not None
                    self._offset, self._mark = 0, b""
                self._file = about.st_dev, about.st_ino
                file.seek(self._offset)
                rest = b""
                while data := file.read(PIECE):
                    lines = (rest + data).split(b"\n")
                    rest = lines.pop()
                    if lines:
                        self._offset = file.tell() - len(rest)
                        self._mark = (lines[-1] + b"\n")[-32:]
                        yield lines
        except FileNotFoundError:
            self.restarted = self._file is not None
            self._file, self._offset, self._mark = None, 0, b""

    def _is_another(self, handle: int, about: os.stat_result) -> bool:
        if self._file != (about.st_dev, about.st_ino) or about.st_size < self._offset:
            return True
        return os.pread(handle, len(self._mark), self._offset - len(self._mark)) != self._mark
