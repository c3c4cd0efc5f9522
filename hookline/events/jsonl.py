"""The log of a run as JSON lines, from which curves and reports are made."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hookline.events.outbox import Record, Row
from hookline.events.rows import RowFile, finite, free_names, iteration_of
from hookline.events.writer import WRITERS, Writer


@WRITERS.register("jsonl")
class JSONLinesWriter(Writer):
    """A writer of lines such as `{"mode": "train", "iter": 50, "epoch": 1, "loss": …}`."""

    def __init__(self, path: str | Path = "metrics.jsonl") -> None:
        self._file = RowFile(path)

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        where = _position(mode, iter, epoch, time.time())
        self._file.append({**where, **finite(free_names(mode, scalars))})

    def write_row(self, row: Row) -> None:
        where = _position(row.mode, row.iter, row.epoch, row.time)
        where["step"] = row.step  # Means of an interval have none.
        self._file.append({**where, **finite(free_names(row.mode, row.values))})

    def write(self, record: Record) -> None:
        if record.kind == "text":
            self.write_entry(record, text=record.value)

    def write_entry(self, record: Record, **content: Any) -> None:
        """Write a line for an image, a histogram or a text, with its kind as the `mode`."""
        where = _position(record.kind, record.iter, record.epoch, record.time)
        if record.global_step is not None:
            where["step"] = record.global_step
        self._file.append({**where, "name": record.name, **content})

    def cut_after(self, iteration: int) -> None:
        """Drop rows after an iteration, which a resumed run writes again."""
        self._file.cut_after(iteration)

    def cut_means_after(self, iteration: int) -> None:
        """Drop means of intervals after an iteration, which a resumed run writes again."""

        def is_unwanted(row: Mapping[str, Any]) -> bool:
            is_mean = row.get("mode") == "train" and "step" not in row
            return is_mean and iteration_of(row) > iteration

        self._file.drop(is_unwanted)

    def set_aside(self) -> None:
        """Rename the file of an earlier run (`log.1.jsonl`) and start a new one."""
        self._file.set_aside()

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.sync()
        self._file.close()


def _position(mode: str, iteration: int, epoch: int, moment: float) -> dict[str, Any]:
    return {"mode": mode, "iter": iteration, "epoch": epoch, "wall_time": round(moment, 3)}
