from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hookline.events.outbox import Record, Row
from hookline.events.visualizer import Visualizer
from tests.helpers import make_runner


class Listener:
    """A writer that keeps names, kinds and steps."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, int]] = []

    def write_row(self, row: Row) -> None:
        self.got += [("scalar", name, row.step) for name in row.values]

    def write(self, record: Record) -> None:
        self.got.append((record.kind, record.name, record.step))


@pytest.mark.parametrize("step", [None, 7])
def test_every_method_records_at_the_given_step(tmp_path: Path, step: int | None) -> None:
    events = make_runner(tmp_path).events
    listener = Listener()
    events.outbox.listeners.append(listener)
    events.outbox.open()
    visualizer = Visualizer(events)
    visualizer.add_scalar("a", 1.0, step)
    events.outbox.deliver()
    visualizer.add_image("b", np.zeros((3, 4, 4), dtype=np.uint8), step)
    visualizer.add_histogram("c", [1.0, 2.0], step)
    visualizer.add_text("d", "text", step)
    at = 0 if step is None else step
    assert listener.got == [
        ("scalar", "a", at),
        ("image", "b", at),
        ("histogram", "c", at),
        ("text", "d", at),
    ]
