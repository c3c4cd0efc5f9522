from __future__ import annotations

import threading

import pytest
import torch

from hookline.events.outbox import (
    MAX_DELAY_S,
    MAX_WAITING,
    MAX_WAITING_RECORDS,
    Outbox,
    Point,
    Record,
    Row,
    as_rows,
)


class Listener:
    """A writer that keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[Row | Record] = []

    def write_row(self, row: Row) -> None:
        self.got.append(row)

    def write(self, record: Record) -> None:
        self.got.append(record)


def point(name: str = "a", value: object = 1.0, iter: int = 1, **others: object) -> Point:
    fields = {"mode": "train", "epoch": 1, "step": iter, "time": 0.0, **others}
    return Point(name=name, value=value, iter=iter, **fields)


def record(iter: int = 1, **others: object) -> Record:
    return Record("text", "note", "x", iter, 1, 0.0, **others)


@pytest.fixture
def outbox() -> Outbox:
    outbox = Outbox()
    outbox.listeners.append(Listener())
    return outbox


def got(outbox: Outbox) -> list[Row | Record]:
    return outbox.listeners[0].got


def test_everything_waits_until_the_writers_are_open(outbox) -> None:
    outbox.put_record(record())
    outbox.put_point(point())
    outbox.deliver()
    assert got(outbox) == []
    outbox.open()
    assert got(outbox) == [Row("train", {"a": 1.0}, 1, 1, 1, 0.0), record()]
    outbox.put_record(record(2))
    outbox.put_point(point(iter=2))
    assert got(outbox)[2:] == [record(2)]
    outbox.deliver()
    assert [each.iter for each in got(outbox)[3:]] == [2]


def test_the_oldest_are_dropped_while_nothing_is_open(outbox) -> None:
    for number in range(MAX_WAITING + 2):
        outbox.put_point(point(iter=number))
    for number in range(MAX_WAITING_RECORDS + 2):
        outbox.put_record(record(number))
    outbox.open()
    rows = [each for each in got(outbox) if isinstance(each, Row)]
    records = [each for each in got(outbox) if isinstance(each, Record)]
    assert [each.iter for each in rows] == list(range(2, MAX_WAITING + 2))
    assert [each.iter for each in records] == list(range(2, MAX_WAITING_RECORDS + 2))


def test_scalars_are_delivered_when_there_are_many(outbox) -> None:
    outbox.open()
    for number in range(MAX_WAITING - 1):
        outbox.put_point(point(iter=number))
    assert got(outbox) == []
    outbox.put_point(point(iter=MAX_WAITING))
    assert len(got(outbox)) == MAX_WAITING


def test_scalars_are_delivered_when_the_first_has_waited_long(outbox) -> None:
    outbox.open()
    outbox.put_point(point())
    outbox.put_point(point(iter=2, time=MAX_DELAY_S))
    assert got(outbox) == []
    outbox.put_point(point(iter=3, time=MAX_DELAY_S + 0.1))
    assert len(got(outbox)) == 3


def test_what_another_thread_records_is_written_by_the_thread_that_opened_the_outbox(
    outbox,
) -> None:
    outbox.open()

    def put_from_elsewhere() -> None:
        outbox.put_record(record())
        for number in range(MAX_WAITING):
            outbox.put_point(point(iter=number))

    thread = threading.Thread(target=put_from_elsewhere)
    thread.start()
    thread.join()
    assert got(outbox) == []
    outbox.deliver()
    assert len(got(outbox)) == MAX_WAITING + 1


def test_a_writer_gets_what_waits_before_it_is_removed(outbox) -> None:
    first, second = outbox.listeners[0], Listener()
    outbox.listeners.append(second)
    outbox.open()
    outbox.put_point(point())
    outbox.remove(first)
    assert len(first.got) == len(second.got) == 1
    outbox.put_record(record())
    assert len(second.got) == 2
    outbox.remove(second)
    outbox.put_record(record(5))  # waits for the next writer
    outbox.listeners.append(first)
    outbox.open()
    assert first.got[1:] == [record(5)]


def test_a_rollback_drops_what_waits_of_later_iterations(outbox) -> None:
    for number in (1, 2, 3):
        outbox.put_point(point(iter=number))
        outbox.put_record(record(number))
    outbox.drop_after(2)
    outbox.open()
    assert [each.iter for each in got(outbox)] == [1, 2, 1, 2]


def test_points_of_one_place_with_different_names_are_one_row() -> None:
    points = [point("a"), point("b", torch.tensor(2.0)), point("a", 3.0), point("c", mode="val")]
    points += [point("d", mode="val", step=7), point("e", iter=2, mode="val", step=7)]
    rows = [(row.mode, row.iter, row.step, row.values) for row in as_rows(points)]
    assert rows == [
        ("train", 1, 1, {"a": 1.0, "b": 2.0}),
        ("train", 1, 1, {"a": 3.0}),
        ("val", 1, 1, {"c": 1.0}),
        ("val", 1, 7, {"d": 1.0}),
        ("val", 2, 7, {"e": 1.0}),
    ]
    assert all(type(value) is float for row in rows for value in row[3].values())
    assert list(as_rows([])) == []


def test_the_step_of_a_record_is_its_iteration_unless_given() -> None:
    assert record(3).step == 3
    assert record(3, global_step=0).step == 0
