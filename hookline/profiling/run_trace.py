"""The trace of a whole run, for chrome://tracing or Perfetto."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from time import perf_counter
from typing import Any

from hookline.files import open_to_append, replace_file

MAX_BUFFERED = 1000  # events in memory


class RunTrace:
    """An observer that writes iterations, phases, hooks and seams to a file as they end."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, "")
        self._file = open_to_append(path)
        self._open: list[tuple[str, str, float]] = []
        self._ready: list[str] = []
        self._ids = {"pid": os.getpid(), "tid": threading.get_native_id()}
        name = {"name": "process_name", "ph": "M", **self._ids, "args": {"name": "hookline"}}
        self._file.write("[\n" + json.dumps(name))

    def before_iteration(self, runner: Any) -> None:
        """Do nothing."""

    def begin(self, kind: str, name: str) -> None:
        """Begin a span."""
        self._open.append((kind, name, perf_counter()))

    def end(self) -> None:
        """End a span and write it."""
        if not self._open:  # it began before the trace
            return
        now = perf_counter()
        kind, name, began = self._open.pop()
        label = f"iteration {name}" if kind == "iteration" else name
        event = {
            "name": label,
            "cat": kind,
            "ph": "X",
            "ts": began * 1e6,
            "dur": (now - began) * 1e6,
            **self._ids,
        }
        self._ready.append(json.dumps(event))
        if len(self._ready) >= MAX_BUFFERED:
            self._write()

    def close(self) -> None:
        """End all spans and complete the file."""
        while self._open:
            self.end()
        self._write()
        self._file.write("\n]\n")
        self._file.close()

    def _write(self) -> None:
        self._file.write("".join(f",\n{event}" for event in self._ready))
        self._ready.clear()
