"""Phases, hooks and seams by name in a torch profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.profiler import record_function

from hookline.engine import BaseRunner

PREFIX = "hookline/"


class Ranges:
    """Watches a run's costs and, while `recording`, names what happens: `hookline/forward`, `hookline/hook Name.site`."""

    def __init__(self, between: Callable[[BaseRunner], None]) -> None:
        self.recording = False
        self.between = between
        self._open: list[Any] = []

    def begin(self, kind: str, name: str) -> None:
        if not self.recording or kind == "iteration":  # the profiler itself names iterations
            self._open.append(None)
            return
        range_ = record_function(PREFIX + (f"hook {name}" if kind == "hook" else name))
        range_.__enter__()  # type: ignore[no-untyped-call]
        self._open.append(range_)

    def end(self) -> None:
        range_ = self._open.pop() if self._open else None
        if range_ is not None:
            range_.__exit__(None, None, None)

    def close(self) -> None:
        """End what is still open."""
        while self._open:
            self.end()
