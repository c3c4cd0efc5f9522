"""Waiting for another thread or process where it cannot send a signal."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT_S = 300.0  # A wait this long means that something is broken, not that the machine is slow.
POLL_S = 0.02


def wait_until(
    condition: Callable[[], object], what: str, details: Callable[[], object] | None = None
) -> None:
    """Return as soon as the condition holds.

    Args:
        what: What the test waits for, for the message of the failure.
        details: Returns more to show in that message, such as the output of a process.
    """
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            more = "" if details is None else f": {details()}"
            raise AssertionError(f"{what} did not happen within {LIMIT_S:.0f} s{more}")
        time.sleep(POLL_S)
