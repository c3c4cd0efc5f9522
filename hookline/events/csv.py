"""A CSV table with a row for each report and a column for each scalar."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from hookline.events.rows import iteration_of, rewrite, set_aside
from hookline.events.writer import WRITERS, Writer


@WRITERS.register("csv")
class CSVWriter(Writer):
    """Appends rows to a CSV file; a new scalar gets a new column, empty in earlier rows."""

    def __init__(self, path: str | Path = "metrics.csv") -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._read_header()

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        row = {"mode": mode, "iter": iter, "epoch": epoch, "wall_time": f"{time.time():.3f}"}
        row |= {_harmless(name): value for name, value in scalars.items()}
        new = [name for name in row if name not in self._columns]
        if new:
            self._columns += new
            self._rewrite(self._rows())
        with self.path.open("a", encoding="utf-8", newline="") as file:
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

    def _rows(self) -> list[dict[str, str]]:
        if not self.path.exists():
            return []
        with self.path.open(encoding="utf-8", newline="", errors="replace") as file:
            return list(csv.DictReader(file))

    def _read_header(self) -> None:
        self._columns: list[str] = []  # The file is created with the first row.
        if self.path.exists():
            with self.path.open(encoding="utf-8", newline="", errors="replace") as file:
                self._columns = next(csv.reader(file), [])

    def _rewrite(self, rows: list[dict[str, str]]) -> None:
        lines = [
            _line(self._columns),
            *(_line([row.get(name) or "" for name in self._columns]) for row in rows),
        ]
        rewrite(self.path, lines)


def _line(cells: Sequence[object]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _harmless(name: str) -> str:
    """Return a column name that no spreadsheet reads as a formula."""
    return f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name
