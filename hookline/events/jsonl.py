"""The log of a run with one JSON object per line; curves and reports are made from it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from hookline.events.rows import RowFile, finite, iteration_of
from hookline.events.storage import Record
from hookline.events.writer import WRITERS, Writer


@WRITERS.register("jsonl")
class JSONLinesWriter(Writer):
    """Appends lines such as `{"mode": "train", "iter": 50, "epoch": 1, "loss": …}` to a file."""

    def __init__(self, path: str | Path = "metrics.jsonl") -> None:
        self._file = RowFile(path)

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        self._file.append(
            {
                "mode": mode,
                "iter": iter,
                "epoch": epoch,
                "wall_time": round(time.time(), 3),
                **finite(scalars),
            }
        )

    def write(self, record: Record) -> None:
        if record.kind == "text":
            where = {
                "iter": record.iter,
                "epoch": record.epoch + 1,
                "wall_time": round(record.time, 3),
            }
            self._file.append({"mode": "text", **where, "name": record.name, "text": record.value})

    def cut_after(self, iteration: int) -> None:
        """Drop rows after an iteration, which a resumed run writes again."""
        self._file.cut_after(iteration)

    def cut_train_rows_after(self, iteration: int) -> None:
        """Drop rows of training after an iteration, which a resumed run writes again."""
        self._file.drop(lambda row: row.get("mode") == "train" and iteration_of(row) > iteration)

    def set_aside(self) -> None:
        """Rename the file of an earlier run (`log.1.jsonl`) and start a new one."""
        self._file.set_aside()

    def sync(self) -> None:
        self._file.sync()

    def close(self) -> None:
        self._file.sync()
        self._file.close()
