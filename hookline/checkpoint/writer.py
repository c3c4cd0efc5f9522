"""Work that goes on beside training."""

from __future__ import annotations

import threading
from collections.abc import Callable


class BackgroundWriter:
    """Runs one job at a time in a daemon thread; what a job raises is raised once, in whoever asks next."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._closed = False

    def submit(self, job: Callable[[], object]) -> None:
        """Start a job, after the one before has ended well."""
        assert not self._closed, "the writer is closed"
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(job,), name="hookline-writer", daemon=True)
        self._thread.start()

    def poll(self) -> bool:
        """Whether a job is still running; costs next to nothing."""
        if self._thread is not None and self._thread.is_alive():
            return True
        self.wait()
        return False

    def wait(self) -> None:
        """Return when no job is running."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def close(self) -> None:
        """Wait for the last job and take no more."""
        self._closed = True
        self.wait()

    def _run(self, job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            self._error = error
