"""Drawing in the background, so that training does not wait for pictures."""

from __future__ import annotations

import collections
import logging
import queue
import threading
from collections.abc import Callable

from hookline.engine import BaseRunner

QUEUE = 32  # what may wait to be drawn; beyond that pictures are dropped, because training is more important
SERVICE = "painter"

Job = Callable[[], None]


class Painter:
    """One thread that draws in order; it starts with the first picture and ends in `finish`.

    A full queue drops pictures, and one that cannot be drawn is told and forgotten; `finish` says how many there were.
    """

    def __init__(self, logger: logging.Logger, size: int = QUEUE) -> None:
        self._logger = logger
        self._jobs: queue.Queue[tuple[str, Job] | None] = queue.Queue(size)
        self._thread: threading.Thread | None = None
        self.dropped: collections.Counter[str] = collections.Counter()
        self.failed: collections.Counter[str] = collections.Counter()

    def has_room(self, who: str) -> bool:
        """Whether a picture would be taken; if not, it counts as dropped."""
        if self._jobs.full():
            self.dropped[who] += 1
            return False
        return True

    def submit(self, who: str, job: Job) -> None:
        """Have something drawn; where several have asked `has_room` for the same place, all but the first are dropped."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="hookline-painter", daemon=True)
            self._thread.start()
        try:
            self._jobs.put_nowait((who, job))
        except queue.Full:
            self.dropped[who] += 1

    def finish(self, discard: bool = False) -> None:
        """Draw what is left (or drop it, if the end is urgent), end the thread, and tell what was not drawn."""
        if self._thread is not None:
            if discard:
                self._discard()
            self._jobs.put(None)
            self._thread.join(timeout=0.5 if discard else None)
            self._thread = None
        for counts, reason in ((self.dropped, "dropped, because drawing could not keep up"), (self.failed, "not drawn, because of errors")):
            if counts:
                each = ", ".join(f"{who} {count}" for who, count in counts.items())
                self._logger.warning("%d pictures were %s: %s", counts.total(), reason, each)
                counts.clear()

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            who, job = item
            try:
                job()
            except Exception as error:  # a picture is not worth the end of a run; the first of a hook is told, all are counted
                if not self.failed[who]:
                    expected = isinstance(error, (ValueError, OSError))
                    self._logger.warning("%s: cannot draw: %s", who, error, exc_info=None if expected else error)
                self.failed[who] += 1

    def _discard(self) -> None:
        try:
            while (item := self._jobs.get_nowait()) is not None:
                self.dropped[item[0]] += 1
        except queue.Empty:
            pass


def painter_of(runner: BaseRunner) -> Painter:
    """The painter that all hooks of a runner share."""
    painter = runner.get_service(SERVICE)
    if painter is None:
        painter = Painter(runner.logger)
        runner.register_service(SERVICE, painter)
    return painter  # type: ignore[no-any-return]


def finish_painting(runner: BaseRunner, discard: bool = False) -> None:
    """Have a runner's painter finish, if there is one."""
    painter = runner.get_service(SERVICE)
    if painter is not None:
        painter.finish(discard)
