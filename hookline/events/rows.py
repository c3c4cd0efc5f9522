"""A file of JSON objects, one per line, that can be cut when a run resumes or starts over."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

# json.dumps would create an encoder for each row.
encode = json.JSONEncoder(ensure_ascii=False).encode


class RowFile:
    """Appends complete lines; each has the `iter` of its values."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.path.open("a", encoding="utf-8")

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
            self.file.close()
            rewrite(self.path, kept)
            self.file = self.path.open("a", encoding="utf-8")
        return len(lines) - len(kept)

    def set_aside(self) -> None:
        """Rename the file of an earlier run (`log.1.jsonl`) and start a new one."""
        self.file.close()
        set_aside(self.path)
        self.file = self.path.open("a", encoding="utf-8")

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Replace all rows."""
        self.file.close()
        rewrite(self.path, [encode(row) for row in rows])
        self.file = self.path.open("a", encoding="utf-8")

    def remove(self) -> None:
        self.file.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        self.file.close()

    def _lines(self) -> list[str]:
        self.file.flush()
        return self.path.read_text(encoding="utf-8", errors="replace").splitlines()


def rewrite(path: Path, lines: Iterable[str]) -> None:
    """Replace the lines of a file atomically."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    partial.replace(path)


def set_aside(path: Path) -> None:
    """Rename a file that is not empty to the first free numbered name."""
    if path.exists() and path.stat().st_size:
        numbered = (
            path.with_name(f"{path.stem}.{number}{path.suffix}") for number in itertools.count(1)
        )
        path.rename(next(other for other in numbered if not other.exists()))


def iteration_of(row: Mapping[str, Any] | None) -> float:
    try:
        return math.inf if row is None else float(row["iter"])
    except (ValueError, KeyError, TypeError):
        return math.inf


def _parse(line: str) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def finite(scalars: Mapping[str, float]) -> dict[str, float | str]:
    """Return scalars with NaN and infinity as text, because JSON has no such numbers."""
    return {name: value if math.isfinite(value) else str(value) for name, value in scalars.items()}
