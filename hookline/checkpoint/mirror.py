"""A mirror of a work directory in object storage, which a thread keeps up to date.

Local files come first: nothing here changes how checkpoints are written, and no failure of the
storage reaches the training.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from hookline.checkpoint.errors import CheckpointError
from hookline.checkpoint.mirror_files import STATUS
from hookline.checkpoint.mirror_restore import restore
from hookline.checkpoint.mirror_upload import MirrorTaken, MirrorUpload
from hookline.checkpoint.store import CheckpointStore
from hookline.errors import HooklineError, Suggestion
from hookline.files import replace_file
from hookline.remote import RemoteDirectory, RemoteError, shown
from hookline.secrets import mask_text

log = logging.getLogger(__name__)

JOIN_S = 0.2  # between two looks at a storage that may hang

Clock = Callable[[], float]
Wait = Callable[[threading.Event, float], object]


@dataclass(frozen=True)
class Limits:
    """How long a mirror tries.

    Args:
        first_delay_s: The time before the first retry; each further one waits twice as long.
        max_delay_s: The longest time between two attempts.
        restore_s: How long a start tries to read a mirror that fails, since its last progress.
        final_s: How long the end of a run waits for a storage that accepts nothing.
        final_attempts: How many uploads may fail at the end of a run.
    """

    first_delay_s: float = 1.0
    max_delay_s: float = 60.0
    restore_s: float = 120.0
    final_s: float = 120.0
    final_attempts: int = 6


DEFAULT_LIMITS = Limits()


class Outcome(Enum):
    """The end of one pass."""

    DONE = auto()
    FAILED = auto()
    TAKEN = auto()  # by another process


class Mirror:
    """A mirror of a work directory.

    Args:
        remote: Where it is.
        work_dir: The directory of logs and reports.
        limits: How long to try.
        clock: The clock for these limits.
        wait: Waits for an event, at most for a number of seconds.
    """

    def __init__(
        self,
        remote: RemoteDirectory,
        work_dir: Path,
        limits: Limits = DEFAULT_LIMITS,
        clock: Clock = time.monotonic,
        wait: Wait = threading.Event.wait,
    ) -> None:
        remote.check_available()
        self.url = shown(remote.url)
        self._remote = remote
        self._work_dir = work_dir
        self._limits = limits
        self._clock = clock
        self._wait = wait
        self._thread: threading.Thread | None = None
        self._upload: MirrorUpload | None = None
        self._changed = threading.Event()  # There is something to upload, or the run ends.
        self._ending = threading.Event()  # The run waits for the upload.
        self._settled = threading.Event()  # Everything before `settle` was uploaded.
        self._closing = threading.Event()
        self._given_up = threading.Event()
        self._status_lock = threading.Lock()
        self._has_leftovers = False
        self._moved_at = clock()  # when the storage last accepted something
        self._failures = 0
        self._error = ""
        self._failing_since: float | None = None  # the restore

    def restore(self, store: CheckpointStore) -> bool:
        """Copy the mirror to the local directory, if it has a newer checkpoint.

        Raises:
            CheckpointError: If it cannot be read and there is no local checkpoint: starting over
                would abandon the run in the mirror.
        """
        while True:
            try:
                return restore(self._remote, store, self._work_dir, self._note_restored)
            except RemoteError as error:
                self._count(error)
                if self._failing_since is None:
                    self._failing_since = self._clock()
                if self._clock() - self._failing_since < self._limits.restore_s:
                    self._wait(self._ending, self._delay())
                elif store.find_latest().entry is not None:
                    log.warning("%s: continuing from the local checkpoint", self.url)
                    return False
                else:
                    advice = "restore the access, or pass resume=None to start over"
                    raise CheckpointError(
                        f"the mirror cannot be read: {self._error}",
                        file=self.url,
                        suggestion=Suggestion(advice=advice),
                    ) from error

    @property
    def movement(self) -> int:
        """A number that grows while the mirror is read; ranks that wait for that are no hang."""
        return self._remote.received + self._failures

    def start(self, store: CheckpointStore, resumed_from: str | None) -> None:
        """Start the thread.

        Args:
            store: The checkpoints to upload.
            resumed_from: The hash of the checkpoint that the run resumed from. The mirror keeps it.
        """
        self._upload = MirrorUpload(self._remote, store, self._work_dir, self._note_progress)
        self._upload.resumed_from = resumed_from
        self._thread = threading.Thread(target=self._run, name="hookline-mirror", daemon=True)
        self._thread.start()
        self.notify()

    def notify(self) -> None:
        """Upload the current state beside the training."""
        self._changed.set()

    def settle(self) -> None:
        """Upload the state at the end of a run, so that a report can list the files only kept here.

        Waits as long as the storage accepts data.
        """
        if self._thread is None:
            return
        self._note_progress()
        self._ending.set()
        self._changed.set()
        while self._thread.is_alive() and not self._is_given_up():
            if self._settled.wait(JOIN_S):
                return
        self._given_up.set()
        self._write_status()

    def close(self, wait: bool = True) -> None:
        """Upload the files since `settle`, and log the checkpoints that are only local.

        Args:
            wait: Whether to wait for the upload, as long as the storage accepts data.
        """
        if self._thread is None or self._upload is None:
            return
        self._note_progress()
        self._closing.set()
        self._ending.set()
        self._changed.set()
        while wait and self._thread.is_alive() and not self._is_given_up():
            self._thread.join(JOIN_S)
        self._given_up.set()
        self._thread = None
        only_local = self._only_local()
        if only_local or self._error:
            names = ", ".join(only_local) or "the last logs"
            reason = "the storage does not answer" if wait else "interrupted"
            if self._error:
                reason = f"{self._failures} failures, the last one: {self._error}"
            log.warning("%s: only local: %s (%s)", self.url, names, reason)

    def _run(self) -> None:
        """Upload until the run ends; the last pass comes after the end was announced."""
        final_failures = 0
        while True:
            self._changed.wait()
            self._changed.clear()
            is_final = self._ending.is_set()
            is_last = self._closing.is_set()
            outcome = self._pass()
            if outcome is Outcome.TAKEN or (outcome is Outcome.DONE and is_last):
                return
            if outcome is Outcome.DONE:
                if is_final:
                    self._settled.set()
                continue
            final_failures += is_final
            if final_failures >= self._limits.final_attempts:
                return
            self._wait(self._given_up if is_final else self._ending, self._delay())
            if self._given_up.is_set():
                return
            self._changed.set()

    def _pass(self) -> Outcome:
        assert self._upload is not None
        try:
            self._upload.run()
        except MirrorTaken as error:
            self._error = str(error)
            log.error("%s", error)
            outcome = Outcome.TAKEN
        # A local error, such as a full disk, must not end the mirroring either.
        except (HooklineError, OSError) as error:
            self._count(error)
            outcome = Outcome.FAILED
        else:
            self._succeed()
            outcome = Outcome.DONE
            self._remove_leftovers()
        self._write_status()
        return outcome

    def _remove_leftovers(self) -> None:
        """Delete surplus files; the storage may forbid that."""
        assert self._upload is not None
        for remove in (self._upload.remove_surplus, self._upload.abort_uploads):
            try:
                remove()
            except RemoteError as error:
                if not self._has_leftovers:
                    text = mask_text(str(error))
                    log.warning("the mirror is up to date, but has surplus files: %s", text)
                self._has_leftovers = True

    def _note_restored(self) -> None:
        self._failing_since = None

    def _note_progress(self, _: int = 0) -> None:
        self._moved_at = self._clock()

    def _is_given_up(self) -> bool:
        """Return whether the storage has accepted nothing for too long since the run's end."""
        return self._given_up.is_set() or self._clock() - self._moved_at >= self._limits.final_s

    def _delay(self) -> float:
        """Return the time until the next attempt."""
        doublings = min(max(self._failures - 1, 0), 20)
        return min(self._limits.first_delay_s * 2.0**doublings, self._limits.max_delay_s)

    def _count(self, error: Exception) -> None:
        """Log the first failure in a row, and count the others."""
        self._failures += 1
        self._error = mask_text(str(error))
        if self._failures == 1:
            log.warning("the mirror is not up to date; trying again: %s", self._error)

    def _succeed(self) -> None:
        if self._failures:
            log.info("%s: up to date again after %d failures", self.url, self._failures)
        self._failures = 0
        self._error = ""
        self._note_progress()

    def _only_local(self) -> list[str]:
        assert self._upload is not None
        try:
            return self._upload.only_local()
        except CheckpointError as error:  # The local manifest is damaged, which was reported.
            return [str(error)]

    def _write_status(self) -> None:
        """Write `mirror.json`, from which the report shows the state of the mirror."""
        status = {
            "url": self.url,
            "time": time.time(),
            "failures": self._failures,
            "error": self._error,
            "only_local": self._only_local(),
        }
        try:
            with self._status_lock:
                replace_file(self._work_dir / STATUS, json.dumps(status, indent=2) + "\n")
        except OSError as error:
            log.debug("%s: not written: %s", STATUS, error)
