"""Context managers around a dry run: collected warnings and a time limit."""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

from hookline.dry_run.findings import DryRunResult, DryRunTimeout, Finding

SHORTEST_TIMER_S = 1e-3  # setitimer takes 0 as "no timer"


class WarningCollector(logging.Handler):
    """A handler that adds warnings of the run to the result of a dry run."""

    def __init__(self, result: DryRunResult) -> None:
        super().__init__(logging.WARNING)
        self._result = result

    def emit(self, record: logging.LogRecord) -> None:
        advice = "the real run logs the same; resolve it, or ignore it"
        self._result.add([Finding("warning", "log", record.getMessage(), advice)])


@contextlib.contextmanager
def collect_warnings(result: DryRunResult) -> Iterator[None]:
    """Turn logged warnings into findings, and hide all other log lines."""
    logger = logging.getLogger("hookline")
    collector = WarningCollector(result)
    propagate = logger.propagate
    logger.propagate = False
    logger.addHandler(collector)
    try:
        yield
    finally:
        logger.removeHandler(collector)
        logger.propagate = propagate


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise DryRunTimeout in the main thread after a time. Does nothing in another thread.

    A timer of the caller continues afterwards. If it ran out inside the block, it ends at once.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(signum: int, frame: FrameType | None) -> None:
        raise DryRunTimeout(f"not finished after {seconds:g} seconds")

    previous = signal.signal(signal.SIGALRM, give_up)
    start = time.monotonic()
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        if remaining > 0:
            remaining -= time.monotonic() - start
            signal.setitimer(signal.ITIMER_REAL, max(remaining, SHORTEST_TIMER_S), interval)
