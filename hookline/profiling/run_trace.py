"""The trace of a whole run, for chrome://tracing or Perfetto."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from time import perf_counter

from hookline.engine import BaseRunner

BUFFERED = 1000  # events between two writes


class RunTrace:
    """Watches a run's costs and writes iterations, phases, hooks and seams as they end; what is in the file is never kept in memory."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("w", encoding="utf-8")
        self._open: list[tuple[str, str, float]] = []
        self._ready: list[str] = []
        self._place = {"pid": os.getpid(), "tid": threading.get_native_id()}
        name = {"name": "process_name", "ph": "M", **self._place, "args": {"name": "hookline"}}
        self._file.write("[\n" + json.dumps(name))

    def between(self, runner: BaseRunner) -> None:
        pass

    def begin(self, kind: str, name: str) -> None:
        self._open.append((kind, name, perf_counter()))

    def end(self) -> None:
        if not self._open:  # it began before the trace did
            return
        now = perf_counter()
        kind, name, began = self._open.pop()
        label = f"iteration {name}" if kind == "iteration" else name
        event = {"name": label, "cat": kind, "ph": "X", "ts": began * 1e6, "dur": (now - began) * 1e6, **self._place}
        self._ready.append(json.dumps(event))
        if len(self._ready) >= BUFFERED:
            self._write()

    def close(self) -> None:
        while self._open:
            self.end()
        self._write()
        self._file.write("\n]\n")
        self._file.close()

    def _write(self) -> None:
        self._file.write("".join(f",\n{event}" for event in self._ready))
        self._ready.clear()
