"""Name phases, hooks and seams in a torch profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.profiler import record_function

PREFIX = "hookline/"


class Ranges:
    """An observer that names spans, such as `hookline/forward` or `hookline/hook Name.site`.

    It does so while `recording` is true.
    """

    def __init__(self, before_iteration: Callable[[Any], None]) -> None:
        self.recording = False
        self.before_iteration = before_iteration
        self._open: list[Any] = []

    def begin(self, kind: str, name: str) -> None:
        """Begin a span."""
        if not self.recording or kind == "iteration":  # the profiler names iterations
            self._open.append(None)
            return
        label = f"hook {name}" if kind == "hook" else name
        range_ = record_function(PREFIX + label)
        range_.__enter__()  # type: ignore[no-untyped-call]
        self._open.append(range_)

    def end(self) -> None:
        """End the span that began last."""
        range_ = self._open.pop() if self._open else None
        if range_ is not None:
            range_.__exit__(None, None, None)

    def close(self) -> None:
        """End all spans."""
        while self._open:
            self.end()
