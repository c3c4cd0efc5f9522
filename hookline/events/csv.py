"""A CSV table with a row for each report and a column for each scalar."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from hookline.events.outbox import Row
from hookline.events.rows import free_names, iteration_of, set_aside
from hookline.events.writer import WRITERS, Writer
from hookline.files import open_to_append, open_to_read, replace_lines, sync_file
from hookline.printable import escaped


@WRITERS.register("csv")
class CSVWriter(Writer):
    """A writer of rows to a CSV file. A new scalar gets a new column, empty in earlier rows."""

    def __init__(self, path: str | Path = "metrics.csv") -> None:
        self.path = Path(path)
        self._read_header()

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        self._append(_position(mode, iter, epoch, time.time()), mode, scalars)

    def write_row(self, row: Row) -> None:
        where = _position(row.mode, row.iter, row.epoch, row.time)
        if row.step != row.iter:
            where["step"] = row.step
        self._append(where, row.mode, row.values)

    def _append(self, row: dict[str, Any], mode: str, scalars: Mapping[str, float]) -> None:
        scalars = free_names(mode, scalars)
        row |= {_harmless(name): value for name, value in scalars.items()}
        new = [name for name in row if name not in self._columns]
        if new:
            self._columns += new
            self._rewrite(self._rows())
        with open_to_append(self.path, newline="") as file:
            file.write(_line([row.get(name, "") for name in self._columns]) + "\n")

    def cut_after(self, iteration: int) -> None:
        """Drop rows beyond an iteration, and a line torn by a crash."""
        rows = self._rows()
        kept = [row for row in rows if iteration_of(row) <= iteration and None not in row.values()]
        if len(kept) < len(rows):
            self._rewrite(kept)

    def set_aside(self) -> None:
        """Rename the table of an earlier run (`metrics.1.csv`) and start a new one."""
        set_aside(self.path)
        self._read_header()

    def sync(self) -> None:
        """Wait until all rows are on the disk."""
        if self.path.exists():
            with open_to_append(self.path, newline="") as file:
                sync_file(file)

    def _rows(self) -> list[dict[str, str]]:
        with self._open() as file:
            return list(csv.DictReader(file))

    def _read_header(self) -> None:
        with self._open() as file:
            self._columns = next(csv.reader(file), [])

    def _open(self) -> TextIO:
        """Open the table for reading; an empty one if the file does not exist yet."""
        try:
            file = open_to_read(self.path)
        except FileNotFoundError:
            return io.StringIO()
        return io.TextIOWrapper(file, encoding="utf-8", newline="", errors="replace")

    def _rewrite(self, rows: list[dict[str, str]]) -> None:
        lines = [
            _line(self._columns),
            *(_line([row.get(name) or "" for name in self._columns]) for row in rows),
        ]
        replace_lines(self.path, lines)


def _position(mode: str, iteration: int, epoch: int, moment: float) -> dict[str, Any]:
    return {"mode": mode, "iter": iteration, "epoch": epoch, "wall_time": f"{moment:.3f}"}


def _line(cells: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _harmless(name: str) -> str:
    """Return a column name in one line that spreadsheets do not read as a formula."""
    name = escaped(name)
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t")) else name
