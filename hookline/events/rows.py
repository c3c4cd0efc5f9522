"""Files of JSON lines that can be cut when a run resumes or starts over."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from hookline.files import open_to_append, read_lines, replace_lines, sync_file

RESERVED = ("mode", "iter", "epoch", "wall_time", "step")  # names that no scalar has

# json.dumps would create an encoder for each row.
encode = json.JSONEncoder(ensure_ascii=False).encode


class RowFile:
    """A file of JSON objects, one per line, each with the `iter` of its values."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.file = open_to_append(self.path)

    def append(self, row: Mapping[str, Any]) -> None:
        self.file.write(encode(row) + "\n")
        self.file.flush()

    def rows(self) -> list[dict[str, Any]]:
        """Return all complete lines; a line that a crash cut is ignored."""
        return [row for line in self._lines() if (row := _parse(line)) is not None]

    def cut_after(self, iteration: int) -> int:
        """Drop rows after an iteration and return their number."""
        return self.drop(lambda row: iteration_of(row) > iteration)

    def drop(self, is_unwanted: Callable[[dict[str, Any]], bool]) -> int:
        """Drop rows, and lines that a crash cut; return their number."""
        lines = self._lines()
        kept = []
        for line in lines:
            row = _parse(line)
            if row is not None and not is_unwanted(row):
                kept.append(line)
        if len(kept) < len(lines):
            self._replace_lines(kept)
        return len(lines) - len(kept)

    def set_aside(self) -> None:
        """Rename the file of an earlier run (`log.1.jsonl`) and start a new one."""
        self.file.close()
        set_aside(self.path)
        self.file = open_to_append(self.path)

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace all rows."""
        self._replace_lines([encode(row) for row in rows])

    def sync(self) -> None:
        """Wait until all rows are on the disk."""
        sync_file(self.file)

    def remove(self) -> None:
        self.file.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        self.file.close()

    def _lines(self) -> list[str]:
        self.file.flush()
        return read_lines(self.path)

    def _replace_lines(self, lines: Iterable[str]) -> None:
        self.file.close()
        replace_lines(self.path, lines)
        self.file = open_to_append(self.path)


def set_aside(path: Path) -> None:
    """Rename a file that is not empty to the first free numbered name."""
    if path.exists() and path.stat().st_size:
        numbered = (
            path.with_name(f"{path.stem}.{number}{path.suffix}") for number in itertools.count(1)
        )
        path.rename(next(other for other in numbered if not other.exists()))


def iteration_of(row: Mapping[str, Any] | None) -> float:
    """Return the iteration of a row; infinity if it is missing or not a number."""
    try:
        iteration = math.inf if row is None else float(row["iter"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return math.inf
    return math.inf if math.isnan(iteration) else iteration


def _parse(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def finite(scalars: Mapping[str, float]) -> dict[str, float | str]:
    """Return scalars with NaN and infinity as text, because JSON has no such numbers."""
    return {name: value if math.isfinite(value) else str(value) for name, value in scalars.items()}


def free_names(mode: str, scalars: Mapping[str, float]) -> Mapping[str, float]:
    """Return scalars without reserved names: `epoch` becomes `train_epoch`."""
    if not any(name in scalars for name in RESERVED):
        return scalars
    return {
        f"{mode}_{name}" if name in RESERVED else name: value for name, value in scalars.items()
    }
