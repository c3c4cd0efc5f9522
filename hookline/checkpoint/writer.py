"""A background thread that runs one job at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BackgroundWriter:
    """A daemon thread that runs one job at a time.

    An error of a job is raised once, by the next call of `submit` or `wait`.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    def submit(self, job: Callable[[], object]) -> None:
        """Wait for the previous job, then start this one."""
        self.wait()
        self._thread = threading.Thread(
            target=self._run, args=(job,), name="hookline-writer", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Return when no job is running."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error = self._error
        self._error = None
        if error is not None:
            raise error

    def _run(self, job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            self._error = error
