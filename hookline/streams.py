"""Keep training when standard output is closed, full or missing."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
from collections.abc import Iterator
from typing import IO, Any


class UnfailingStream:
    """A text stream that drops all output after the first failed write.

    The reader of a pipe may have exited (`| head`), the disk may be full, or the terminal may be
    closed. None of these may end a run.

    Args:
        stream: The stream; None if the process was started without one.
    """

    def __init__(self, stream: IO[str] | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if self._stream is not None:
            try:
                return self._stream.write(text)
            except (OSError, ValueError):  # ValueError: the stream is closed
                self.give_up()
        return len(text)

    def flush(self) -> None:
        if self._stream is not None:
            try:
                self._stream.flush()
            except (OSError, ValueError):
                self.give_up()

    def isatty(self) -> bool:
        return is_terminal(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def give_up(self) -> None:
        """Redirect the rest to /dev/null, also the buffer that Python flushes at exit."""
        stream, self._stream = self._stream, None
        with contextlib.suppress(OSError, ValueError, AttributeError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())  # type: ignore[union-attr]
            os.close(null)


def is_terminal(stream: IO[str] | None) -> bool:
    """Return whether a stream is a terminal; False if there is no stream."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # The stream is closed.
        return False


def in_notebook() -> bool:
    """Return whether output goes to the cell of a notebook; False in processes that it starts."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return hasattr(shell, "kernel") and multiprocessing.parent_process() is None


@contextlib.contextmanager
def unfailing_output() -> Iterator[None]:
    """Make standard output and standard error unfailing, also for `print` in the user's code."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (UnfailingStream(stream) for stream in before)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def open_missing_streams() -> None:
    """Open the standard streams that the process was started without.

    Otherwise the next opened file gets the descriptor of a standard stream, and libraries would
    print into it.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
