"""TensorBoard's event files, cut at the iteration that a resumed run continues from.

An event has a step on the x axis, which may be given by the user, but not the iteration that it was
recorded in. Marks between the events have it; TensorBoard ignores them.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

PATTERN = "events.out.tfevents.*"


class Recorded(NamedTuple):
    """An event and the iteration that it was recorded in."""

    iteration: int
    event: Any


def mark(iteration: int) -> Any:
    """Return an event that marks the following ones as recorded in an iteration."""
    from tensorboard.compat.proto.event_pb2 import Event, LogMessage

    return Event(step=iteration, log_message=LogMessage(message="iteration"))


def cut_files(folder: Path, iteration: int) -> tuple[bool, list[Recorded]]:
    """Cut the events that were recorded after an iteration off the event files.

    Files without marks, such as those of other programs, are left alone.

    Returns:
        Whether there may be events to drop for a TensorBoard that has read the files, and the
        remaining events with later steps, which it would drop too.
    """
    has_later_events = False
    later_steps: list[Recorded] = []
    for path in sorted(folder.glob(PATTERN), key=_age):
        recorded_in: int | None = None
        for offset, event in _events(path):
            is_mark = event is not None and event.HasField("log_message")
            if is_mark and event.step <= iteration:
                recorded_in = event.step
            elif is_mark or (event is None and recorded_in is not None):
                has_later_events = True
                os.truncate(path, offset)
                break
            elif event is not None and _is_restart(event):
                later_steps = [each for each in later_steps if each.event.step < event.step]
            elif event is not None and event.HasField("summary") and event.step > iteration:
                if recorded_in is None:
                    has_later_events = True
                else:
                    later_steps.append(Recorded(recorded_in, event))
    return has_later_events, later_steps


def _events(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield each event with its offset; None at the end for one that a crash damaged."""
    from google.protobuf.message import DecodeError
    from tensorboard.compat.proto.event_pb2 import Event

    size = path.stat().st_size
    with path.open("rb") as file:
        offset = 0
        while offset < size:
            header = file.read(12)  # the length of the event and a checksum of it
            length = struct.unpack("<Q", header[:8])[0] if len(header) == 12 else size
            end = offset + 12 + length + 4
            if end > size:
                yield offset, None
                return
            try:
                event = Event.FromString(file.read(length))
            except DecodeError:
                yield offset, None
                return
            yield offset, event
            file.seek(end)
            offset = end


def _is_restart(event: Any) -> bool:
    """Return whether TensorBoard drops earlier events from the step of this one on."""
    if not event.HasField("session_log"):
        return False
    return bool(event.session_log.status == event.session_log.START)


def _age(path: Path) -> tuple[str, int, str]:
    """Return the time in a file's name, then its number: 9 comes before 10."""
    return path.name.split(".")[3], len(path.name), path.name
