"""One JSON object a line: the record that everything else (curves, reports) is made from."""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Mapping
from pathlib import Path

from hookline.events.writer import WRITERS, Writer


@WRITERS.register("jsonl")
class JSONLinesWriter(Writer):
    """Appends `{"mode": "train", "iter": 50, "epoch": 1, "time": …, "loss": …}` to a file, complete line by complete line."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a", encoding="utf-8")

    def write_scalars(self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int) -> None:
        finite = {name: value if math.isfinite(value) else str(value) for name, value in scalars.items()}  # JSON has no NaN
        row = {"mode": mode, "iter": iter, "epoch": epoch, "wall_time": round(time.time(), 3), **finite}
        self._file.write(json.dumps(row, ensure_ascii=False) + "\n")
        self._file.flush()

    def cut_after(self, iteration: int) -> int:
        """Drop rows beyond an iteration, so that a resumed run leaves no double points; how many went."""
        self._file.flush()
        rows = self.path.read_text(encoding="utf-8").splitlines()
        kept = [row for row in rows if _iteration(row) <= iteration]
        if len(kept) < len(rows):
            self._file.close()
            partial = self.path.with_name(f".{self.path.name}.partial")
            partial.write_text("".join(f"{row}\n" for row in kept), encoding="utf-8")
            partial.replace(self.path)
            self._file = self.path.open("a", encoding="utf-8")
        return len(rows) - len(kept)

    def set_aside(self) -> None:
        """Keep the rows of an earlier run under another name (`log.1.jsonl`) and begin anew."""
        if self.path.stat().st_size:
            numbered = (self.path.with_name(f"{self.path.stem}.{number}{self.path.suffix}") for number in itertools.count(1))
            self._file.close()
            self.path.rename(next(path for path in numbered if not path.exists()))
            self._file = self.path.open("a", encoding="utf-8")

    def close(self) -> None:
        self._file.close()


def _iteration(row: str) -> float:
    try:
        return float(json.loads(row)["iter"])
    except (ValueError, KeyError, TypeError):
        return math.inf  # a line torn by a crash belongs to nobody
