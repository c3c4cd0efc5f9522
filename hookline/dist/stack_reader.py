"""Read the stack of a thread while it runs."""

from __future__ import annotations

import faulthandler
import re
import tempfile

HEADER = re.compile(r"(?:Current thread|Thread) 0x(?P<thread>[0-9a-f]+)\b")
CALL = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in ')


class StackReader:
    """A reader of the lines that a thread executes.

    faulthandler reads a stack in one step and without frame objects. Walking the frames of another
    thread in Python is unsafe: that thread runs in between, and CPython 3.11 can crash.

    Args:
        thread: The identifier of the thread.
    """

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 (closed with this object)

    def read(self) -> list[tuple[str, int]]:
        """Return the file and line of each call, the innermost first."""
        self._file.seek(0)
        self._file.truncate()
        faulthandler.dump_traceback(self._file, all_threads=True)
        self._file.seek(0)
        return parse_stack(self._file.read().decode(), self._thread)


def parse_stack(dump: str, thread: int) -> list[tuple[str, int]]:
    """Return the calls of one thread in a dump of faulthandler."""
    calls = []
    is_wanted = False
    for text in dump.splitlines():
        header = HEADER.match(text)
        call = CALL.match(text)
        if header is not None:
            is_wanted = int(header["thread"], 16) == thread
        elif call is not None and is_wanted:
            calls.append((call["file"], int(call["line"])))
    return calls
