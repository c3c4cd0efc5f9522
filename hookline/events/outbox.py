"""Records that wait for the writers. Each is written once, at the step where it was recorded."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from hookline.events.series import to_numbers
from hookline.secrets import mask_text

MAX_WAITING = 1024  # scalars that may wait before they are written
MAX_WAITING_RECORDS = 64  # images and other records that wait for the writers to open
MAX_DELAY_S = 5.0  # how long a scalar may wait while others follow

T = TypeVar("T")


class Record(NamedTuple):
    """An image, histogram, figure, text or file with its position in the run.

    Attributes:
        kind: One of image, histogram, figure, text and artifact.
        name: The name.
        value: The content; the path of an artifact.
        iter: The iteration that it belongs to, counted from 1; a resumed run cuts logs by it.
        epoch: The epoch that it belongs to, counted from 1.
        time: The wall time of the recording.
        global_step: Its position on the x axis if that is not the iteration.
        owner: The hook that writes its own file of this record, if one does.
    """

    kind: str
    name: str
    value: Any
    iter: int
    epoch: int
    time: float
    global_step: int | None = None
    owner: str = ""

    @property
    def step(self) -> int:
        """The position on the x axis."""
        return self.iter if self.global_step is None else self.global_step


class Row(NamedTuple):
    """Scalars that were recorded together.

    Attributes:
        mode: The part of the run: train, val or test.
        values: The scalars by name.
        iter: The iteration that they belong to, counted from 1; a resumed run cuts logs by it.
        epoch: The epoch that they belong to, counted from 1.
        step: Their position on the x axis.
        time: The wall time of the recording.
    """

    mode: str
    values: dict[str, float]
    iter: int
    epoch: int
    step: int
    time: float


class Point(NamedTuple):
    """A scalar that waits to be written; its value may still be on a device."""

    mode: str
    name: str
    value: Any
    iter: int
    epoch: int
    step: int
    time: float


class Listener(Protocol):
    """A writer."""

    def write_row(self, row: Row) -> None: ...

    def write(self, record: Record) -> None: ...


class Outbox:
    """A queue of records that are written in order, as soon as all writers are open.

    Scalars also wait while an iteration runs, because those on a device are fetched together.
    Writers are used only by the thread that opened the outbox, because they also cut and save their
    files there. Records of other threads, such as finished pictures, wait for the next delivery.

    Attributes:
        listeners: The writers.
        lost: Kinds and names of records that nothing has written, because there was no writer.
    """

    def __init__(self) -> None:
        self.listeners: list[Listener] = []
        self.lost: set[str] = set()
        self._thread: int | None = None  # the thread that delivers, while the outbox is open
        self._points: deque[Point] = deque()
        self._records: deque[Record] = deque()

    def open(self) -> None:
        """Deliver waiting records, and new ones at once, because all writers are open now."""
        self._thread = threading.get_ident()
        self.deliver()

    def put_point(self, point: Point) -> None:
        """Add a scalar."""
        self._points.append(point)
        is_late = point.time - self._points[0].time > MAX_DELAY_S
        if is_late or len(self._points) >= MAX_WAITING:
            self.deliver()

    def put_record(self, record: Record) -> None:
        """Add an image or another record, with secrets masked in its name and its text."""
        record = record._replace(name=mask_text(record.name))
        if record.kind == "text":
            record = record._replace(value=mask_text(record.value))
        self._records.append(record)
        if self._thread == threading.get_ident():
            self._deliver_records()
        elif self._thread is None and len(self._records) > MAX_WAITING_RECORDS:
            self._records.popleft()

    def deliver(self) -> None:
        """Write the waiting records, if the writers are open."""
        if self._thread is None:
            while len(self._points) > MAX_WAITING:
                self._points.popleft()
        elif self._thread == threading.get_ident():
            for row in as_rows(_take_all(self._points)):
                for listener in self.listeners:
                    listener.write_row(row)
            self._deliver_records()

    def remove(self, listener: Listener) -> None:
        """Deliver waiting records and remove a writer; after the last one, new records wait."""
        self.deliver()
        self.listeners.remove(listener)
        if not self.listeners:
            self._thread = None

    def drop_after(self, iteration: int) -> None:
        """Drop waiting records of later iterations, which a rollback repeats."""
        self._points.extend(each for each in _take_all(self._points) if each.iter <= iteration)
        self._records.extend(each for each in _take_all(self._records) if each.iter <= iteration)

    def _deliver_records(self) -> None:
        for record in _take_all(self._records):
            if not self.listeners and not record.owner:
                self.lost.add(f"{record.kind} {record.name!r}")
            for listener in self.listeners:
                listener.write(record)


def _take_all(waiting: deque[T]) -> list[T]:
    """Empty a queue to which other threads may add."""
    return [waiting.popleft() for _ in range(len(waiting))]


def as_rows(points: Sequence[Point]) -> Iterator[Row]:
    """Yield rows of consecutive points with the same position and different names."""
    row: Row | None = None
    values = to_numbers([point.value for point in points])
    for point, value in zip(points, values, strict=True):
        if row is not None and _belongs_to(point, row):
            row.values[point.name] = value
            continue
        if row is not None:
            yield row
        row = Row(point.mode, {point.name: value}, point.iter, point.epoch, point.step, point.time)
    if row is not None:
        yield row


def _belongs_to(point: Point, row: Row) -> bool:
    same_position = (point.mode, point.iter, point.step) == (row.mode, row.iter, row.step)
    return same_position and point.name not in row.values
