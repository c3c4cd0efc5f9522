"""The thread that draws pictures, so that training does not wait for them."""

from __future__ import annotations

import collections
import logging
import queue
import threading
from collections.abc import Callable

from hookline.engine import BaseRunner

MAX_QUEUED = 32  # pictures; more are dropped, because training has priority
DISCARD_TIMEOUT_S = 0.5
SERVICE = "painter"

Job = Callable[[], None]


class Painter:
    """A thread that draws pictures in order. It starts with the first one and ends in `finish`.

    Pictures are dropped while the queue is full. A picture that cannot be drawn is logged for the
    first time, and counted; `finish` logs the numbers.
    """

    def __init__(self, logger: logging.Logger, size: int = MAX_QUEUED) -> None:
        self._logger = logger
        self._jobs: queue.Queue[tuple[str, Job] | None] = queue.Queue(size)
        self._thread: threading.Thread | None = None
        self.dropped: collections.Counter[str] = collections.Counter()
        self.failed: collections.Counter[str] = collections.Counter()

    def has_room(self, hook: str) -> bool:
        """Return whether the queue has room; if not, count a dropped picture of the hook."""
        if self._jobs.full():
            self.dropped[hook] += 1
            return False
        return True

    def submit(self, hook: str, job: Job) -> None:
        """Queue a picture, or drop it if the queue has filled up since `has_room`."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="hookline-painter", daemon=True)
            self._thread.start()
        try:
            self._jobs.put_nowait((hook, job))
        except queue.Full:
            self.dropped[hook] += 1

    def finish(self, discard: bool = False) -> None:
        """Draw the queued pictures, end the thread, and log how many are missing.

        Args:
            discard: Drop the queued pictures instead of drawing them.
        """
        if self._thread is not None:
            if discard:
                self._drop_queued()
            self._jobs.put(None)
            self._thread.join(timeout=DISCARD_TIMEOUT_S if discard else None)
            self._thread = None
        self._log_missing(self.dropped, "dropped, because drawing could not keep up")
        self._log_missing(self.failed, "not drawn, because of errors")

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            hook, job = item
            try:
                job()
            except Exception as error:  # a picture must not end the run
                if not self.failed[hook]:
                    self._log_error(hook, error)
                self.failed[hook] += 1

    def _log_error(self, hook: str, error: Exception) -> None:
        """Log an error; one that is not about the data or the disk with its traceback."""
        is_expected = isinstance(error, (ValueError, OSError))
        traceback = None if is_expected else error
        self._logger.warning("%s: cannot draw: %s", hook, error, exc_info=traceback)

    def _log_missing(self, counts: collections.Counter[str], reason: str) -> None:
        if counts:
            by_hook = ", ".join(f"{hook} {count}" for hook, count in counts.items())
            self._logger.warning("%d pictures were %s: %s", counts.total(), reason, by_hook)
            counts.clear()

    def _drop_queued(self) -> None:
        while True:
            try:
                item = self._jobs.get_nowait()
            except queue.Empty:
                return
            if item is not None:
                self.dropped[item[0]] += 1


def get_painter(runner: BaseRunner) -> Painter:
    """Return the painter that all hooks of a runner share."""
    painter = runner.get_service(SERVICE)
    if painter is None:
        painter = Painter(runner.logger)
        runner.register_service(SERVICE, painter)
    assert isinstance(painter, Painter)
    return painter


def finish_painting(runner: BaseRunner, discard: bool = False) -> None:
    """Finish the painter of a runner if there is one, and deliver its pictures."""
    painter = runner.get_service(SERVICE)
    if painter is not None:
        painter.finish(discard)
        runner.events.outbox.deliver()
