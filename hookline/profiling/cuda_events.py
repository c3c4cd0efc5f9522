"""Time phases on a GPU, and count the operations that make the host wait for it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch

SYNC_WARNING = "called a synchronizing CUDA operation"  # how torch's warning begins


def _cuda_event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _set_sync_warnings(on: bool) -> None:
    torch.cuda.set_sync_debug_mode("warn" if on else "default")


class CudaPhaseTimer:
    """Times phases by events on the device's stream. They are read later, so nothing waits."""

    def __init__(self, make_event: Callable[[], Any] = _cuda_event) -> None:
        self.phases: dict[str, float] = {}  # seconds of all iterations read so far
        self.samples = 0
        self._make_event = make_event
        self._kinds: list[str] = []
        self._marks: list[tuple[str, Any]] = []  # phases of this iteration, with their events
        self._waiting: list[list[tuple[str, Any]]] = []

    def before_iteration(self, runner: Any) -> None:
        """Do nothing."""

    def begin(self, kind: str, name: str) -> None:
        """Record the event at which a phase begins."""
        self._kinds.append(kind)
        if kind == "iteration":
            self._marks = []
            self._read()
        elif kind == "phase":
            self._mark(name)

    def end(self) -> None:
        """Keep the events of a complete iteration until they have passed."""
        if self._kinds and self._kinds.pop() == "iteration":
            self._mark("")
            if any(name == "forward" for name, _ in self._marks):  # else there was no batch left
                self._waiting.append(self._marks)

    def _mark(self, name: str) -> None:
        event = self._make_event()
        event.record()
        self._marks.append((name, event))

    def _read(self) -> None:
        while self._waiting and self._waiting[0][-1][1].query():
            marks = self._waiting.pop(0)
            self.samples += 1
            for (name, event), (_, following) in pairwise(marks):
                seconds = event.elapsed_time(following) / 1e3
                self.phases[name] = self.phases.get(name, 0.0) + seconds


class SyncCounter:
    """A counter, by hook, of operations such as `.item()` that make the host wait.

    Torch warns about them while an iteration is sampled. All other warnings are passed on.
    """

    def __init__(self, set_warnings: Callable[[bool], None] = _set_sync_warnings) -> None:
        self.found: Counter[str] = Counter()
        self._set_warnings = set_warnings
        self._open: list[tuple[str, str, int]] = []  # kind, name, number of warnings before it
        self._catcher: warnings.catch_warnings[list[warnings.WarningMessage]] | None = None
        self._caught: list[warnings.WarningMessage] = []

    def before_iteration(self, runner: Any) -> None:
        """Do nothing."""

    def begin(self, kind: str, name: str) -> None:
        """Catch warnings from the beginning of an iteration on."""
        if kind == "iteration":
            self._catcher = warnings.catch_warnings(record=True)
            self._caught = self._catcher.__enter__()
            warnings.simplefilter("always")
            self._set_warnings(True)
        self._open.append((kind, name, self._count()))

    def end(self) -> None:
        """Count the warnings of a hook; pass the others on when the iteration is over."""
        if not self._open:
            return
        kind, name, before = self._open.pop()
        if kind == "hook" and self._count() > before:
            self.found[name] += self._count() - before
        if kind == "iteration" and self._catcher is not None:
            self._set_warnings(False)
            self._catcher.__exit__(None, None, None)
            self._catcher = None
            for caught in self._caught:
                if not str(caught.message).startswith(SYNC_WARNING):
                    warnings.warn_explicit(
                        caught.message, caught.category, caught.filename, caught.lineno
                    )

    def _count(self) -> int:
        return sum(str(caught.message).startswith(SYNC_WARNING) for caught in self._caught)
