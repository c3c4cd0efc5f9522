"""What a GPU tells of itself while an iteration is timed: how long its phases take, and who makes the host wait for it."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

SYNCHRONIZES = "called a synchronizing CUDA operation"  # how torch's warning begins


def _cuda_event() -> Any:
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def _warn_of_syncs(on: bool) -> None:
    torch.cuda.set_sync_debug_mode("warn" if on else "default")


class DeviceClock:
    """Times phases by events on the device's stream, read once they have passed: nothing ever waits for them."""

    def __init__(self, make_event: Callable[[], Any] = _cuda_event) -> None:
        self.phases: dict[str, float] = {}  # seconds of all iterations read so far
        self.samples = 0
        self._make_event = make_event
        self._kinds: list[str] = []
        self._marks: list[tuple[str, Any]] = []  # the phases of the iteration that is being timed, each with its begin
        self._waiting: list[list[tuple[str, Any]]] = []

    def between(self, runner: BaseRunner) -> None:
        pass

    def begin(self, kind: str, name: str) -> None:
        self._kinds.append(kind)
        if kind == "iteration":
            self._marks = []
            self._read()
        elif kind == "phase":
            self._mark(name)

    def end(self) -> None:
        if self._kinds and self._kinds.pop() == "iteration":
            self._mark("")
            if any(name == "forward" for name, _ in self._marks):  # else there was no batch any more
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
                self.phases[name] = self.phases.get(name, 0.0) + event.elapsed_time(following) / 1e3


class SyncWatch:
    """Counts by hook (or phase) the operations that made the host wait for the device, such as `.item()`.

    Torch warns of them while an iteration is timed; these warnings are taken, all others passed on.
    """

    def __init__(self, warn: Callable[[bool], None] = _warn_of_syncs) -> None:
        self.found: Counter[str] = Counter()
        self._warn = warn
        self._open: list[tuple[str, str, int]] = []  # kind, name, and how many warnings there were before
        self._catcher: warnings.catch_warnings[list[warnings.WarningMessage]] | None = None
        self._caught: list[warnings.WarningMessage] = []

    def between(self, runner: BaseRunner) -> None:
        pass

    def begin(self, kind: str, name: str) -> None:
        if kind == "iteration":
            self._catcher = warnings.catch_warnings(record=True)
            self._caught = self._catcher.__enter__()
            warnings.simplefilter("always")
            self._warn(True)
        self._open.append((kind, name, self._count()))

    def end(self) -> None:
        if not self._open:
            return
        kind, name, before = self._open.pop()
        if kind == "hook" and self._count() > before:
            self.found[name] += self._count() - before
        if kind == "iteration" and self._catcher is not None:
            self._warn(False)
            self._catcher.__exit__(None, None, None)
            self._catcher = None
            for caught in self._caught:
                if not str(caught.message).startswith(SYNCHRONIZES):
                    warnings.warn_explicit(caught.message, caught.category, caught.filename, caught.lineno)

    def _count(self) -> int:
        return sum(str(caught.message).startswith(SYNCHRONIZES) for caught in self._caught)
