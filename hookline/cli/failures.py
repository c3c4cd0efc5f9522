"""How errors look on the command line: a message for a mistake, the user's own part of the traceback for a failure."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import TracebackType

PACKAGE = str(Path(__file__).parent.parent)


def show_mistake(error: BaseException) -> None:
    """Only what is wrong: where it was raised helps nobody."""
    print("\n".join([str(error), *_notes(error)]), file=sys.stderr)


def show_failure(error: BaseException, *, whole: bool) -> None:
    """The traceback, without Hookline's frames at its beginning unless `whole`, and the notes about hook and site."""
    trace = error.__traceback__ if whole else _from_users_code(error.__traceback__)
    lines = traceback.format_exception(type(error), error, trace)
    if sys.version_info < (3, 11):  # which does not print notes
        lines += [f"{note}\n" for note in _notes(error)]
    print("".join(lines), end="", file=sys.stderr)


def _from_users_code(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame on that is not ours; all of it if there is no such frame."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(PACKAGE):
        inner = inner.tb_next
    return inner or trace


def _notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", []))
