"""The warnings of a run, from its text log."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from hookline.report.tail import Tail
from hookline.secrets import mask_text

MAX_PREFIX = 40  # bytes up to the end of the level
MAX_WARNINGS = 200
MAX_TEXT = 2000  # characters of one warning
LEVELS = ("WARNING", "ERROR", "CRITICAL")
LINE = re.compile(
    r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),\d{3} (WARNING|ERROR|CRITICAL|INFO|DEBUG) (.*)"
)


class WarningReader:
    """A reader of the warnings and errors in a `hookline.log`, oldest first.

    Only the first `MAX_WARNINGS` are kept; `left_out` counts the others.
    """

    def __init__(self, path: Path) -> None:
        self._tail = Tail(path)
        self._forget()

    def _forget(self) -> None:
        self.found: list[dict[str, Any]] = []
        self.left_out = 0
        self._continues = False  # whether the next line may belong to the last warning

    def about(self) -> dict[str, Any]:
        """Return the position of the reader and everything it knows, for an index."""
        facts = {"left_out": self.left_out, "continues": self._continues}
        return {"tail": self._tail.about(), "found": self.found, **facts}

    def restore(self, about: dict[str, Any]) -> None:
        """Continue where an index ends, if the log is the one that it was made of."""
        found = [
            {"time": float(row["time"]), "level": str(row["level"]), "text": str(row["text"])}
            for row in about["found"][:MAX_WARNINGS]
        ]
        if self._tail.restore(about["tail"]):
            self.found = found
            self.left_out = int(about["left_out"])
            self._continues = bool(about["continues"] and found)

    def unindexed_bytes(self) -> int:
        return self._tail.unindexed_bytes()

    def mark_indexed(self) -> None:
        self._tail.mark_indexed()

    def update(self) -> None:
        """Read the new lines of the log."""
        for lines in self._tail.new_lines():
            if self._tail.restarted:
                self._tail.restarted = False
                self._forget()
            for line in lines:
                if self._continues or b" INFO " not in line[:MAX_PREFIX]:
                    self._add(line.decode(errors="replace"))

    def since(self, moment: float) -> list[dict[str, Any]]:
        """Return the warnings since a time: the log may have those of earlier runs as well."""
        return [each for each in self.found if each["time"] >= moment - 1]

    def _add(self, line: str) -> None:
        match = LINE.fullmatch(line)
        if match is None:
            if self._continues and len(self.found[-1]["text"]) < MAX_TEXT:
                self.found[-1]["text"] += "\n" + mask_text(line)
            return
        moment, level, text = match.groups()
        self._continues = False
        try:
            seconds = time.mktime(time.strptime(moment, "%Y-%m-%d %H:%M:%S"))
        except (ValueError, OverflowError):
            return  # not one of our lines
        if level not in LEVELS:
            return
        if len(self.found) >= MAX_WARNINGS:
            self.left_out += 1
            return
        self._continues = True
        text = mask_text(text)[:MAX_TEXT]
        self.found.append({"time": seconds, "level": level.lower(), "text": text})
