"""A file of JSON objects, one a line, that a run which goes back or begins anew leaves in order."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

encode = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make an encoder for each row


class RowFile:
    """Appends complete lines; each has the `iter` that it belongs to."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = self.path.open("a", encoding="utf-8")

    def append(self, row: Mapping[str, Any]) -> None:
        self.file.write(encode(row) + "\n")
        self.file.flush()

    def rows(self) -> list[dict[str, Any]]:
        """All whole lines; one torn by a crash belongs to nobody."""
        return [row for line in self._lines() if (row := _parse(line)) is not None]

    def cut_after(self, iteration: int) -> int:
        """Drop rows beyond an iteration; how many went."""
        lines = self._lines()
        kept = [line for line in lines if iteration_of(_parse(line)) <= iteration]
        if len(kept) < len(lines):
            self.file.close()
            rewrite(self.path, kept)
            self.file = self.path.open("a", encoding="utf-8")
        return len(lines) - len(kept)

    def set_aside(self) -> None:
        """Keep the rows of an earlier run under another name (`log.1.jsonl`) and begin anew."""
        self.file.close()
        set_aside(self.path)
        self.file = self.path.open("a", encoding="utf-8")

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Have these rows and no others."""
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
    """Replace the lines of a file, at no moment leaving half of them."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    partial.replace(path)


def set_aside(path: Path) -> None:
    """Give a file that is not empty a name with a number that no other has."""
    if path.exists() and path.stat().st_size:
        numbered = (path.with_name(f"{path.stem}.{number}{path.suffix}") for number in itertools.count(1))
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
    """JSON has no NaN: what is not finite becomes text."""
    return {name: value if math.isfinite(value) else str(value) for name, value in scalars.items()}
