"""A clock for the watchdogs of real processes, which runs only while a test needs it to."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from hookline.dist import hang_report
from hookline.dist.watchdog import Watchdog

PATIENCE_S = 60.0  # A rank that sends no heartbeat for so long is not just slow.


class GatedClock:
    """A clock that stands still until a file exists.

    Before that a watchdog finds no rank stuck, however slowly the ranks start and train.
    """

    def __init__(self, gate: Path) -> None:
        self.gate = gate
        self.opened_at: float | None = None

    def __call__(self) -> float:
        if self.opened_at is None:
            if not self.gate.exists():
                return 0.0
            self.opened_at = time.monotonic()
        return time.monotonic() - self.opened_at


def gate_watchdogs(gate: Path, patience: float | None = PATIENCE_S) -> None:
    """Make the watchdogs of this process use a gated clock."""
    hang_report.Watchdog = partial(Watchdog, clock=GatedClock(gate), patience=patience)
