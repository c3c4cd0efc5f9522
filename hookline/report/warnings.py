"""What a run has warned of, from its text log."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from hookline.report.tail import Tail
from hookline.secrets import mask_text

MOST = 200
LONGEST = 2000  # characters of one
LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (WARNING|ERROR|CRITICAL|INFO|DEBUG) (.*)")


class WarningReader:
    """The warnings and errors in a `hookline.log`, oldest first; of very many the first ones."""

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self.found: list[dict[str, Any]] = []
        self.more = 0
        self._open = False  # whether the last line seen belongs to one that is kept

    def update(self) -> None:
        for lines in self._tail.pieces():
            if self._tail.restarted:
                self._tail.restarted = False
                self.found, self.more, self._open = [], 0, False
            for line in lines:
                self._add(line.decode(errors="replace"))

    def since(self, moment: float) -> list[dict[str, Any]]:
        """Those of this run, where the folder has seen others before."""
        return [each for each in self.found if each["time"] >= moment - 1]

    def _add(self, line: str) -> None:
        begins = LINE.fullmatch(line)
        if begins is None:
            if self._open and len(self.found[-1]["text"]) < LONGEST:
                self.found[-1]["text"] += "\n" + mask_text(line)
            return
        self._open = begins[2] in ("WARNING", "ERROR", "CRITICAL")
        if self._open and len(self.found) >= MOST:
            self._open, self.more = False, self.more + 1
        if self._open:
            moment = time.mktime(time.strptime(begins[1], "%Y-%m-%d %H:%M:%S"))
            self.found.append({"time": moment, "level": begins[2].lower(), "text": mask_text(begins[3])[:LONGEST]})
