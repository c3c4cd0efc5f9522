"""Deliver records to a tracker without making training stop or wait for it."""

from __future__ import annotations

import collections
import logging
import queue
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from hookline.errors import HooklineError
from hookline.events.backlog import Backlog, Config, Job, Scalars, hand_over
from hookline.events.outbox import Record, Row
from hookline.events.portable import portable
from hookline.events.receipts import Receipts
from hookline.events.writer import Writer
from hookline.secrets import mask_text

RETRY_AFTER = 10.0  # seconds from a failure to the next attempt
PATIENCE = 30.0  # seconds that the end of a run waits for a slow tracker

log = logging.getLogger("hookline")


class Delivery(Writer):
    """The way of records to a writer. Those that it fails to take wait on disk for a retry.

    A slow writer is opened and used in its own thread. A writer that cannot drop points gets each
    value once, also if a run is killed and repeats iterations after a resume.

    Args:
        name: The name of the tracker in log messages.
        make: Opens the writer.
        backlog: Holds undelivered records.
        slow: Whether to use a thread.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        name: str,
        make: Callable[[], Writer],
        backlog: Backlog,
        *,
        slow: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._clock = clock
        self.patience = PATIENCE
        self.retry_after = RETRY_AFTER
        self._make = make
        self._backlog = backlog
        self._receipts = Receipts(backlog.path_of("delivered"), backlog.run_id)
        self._waiting: collections.deque[Job] = collections.deque()  # of the thread
        self._writer: Writer | None = None
        self._jobs: queue.SimpleQueue[Job | Callable[[], object] | None] = queue.SimpleQueue()
        self._keeping = threading.Lock()
        self._lost = 0
        self._warned = False
        self._try_at = 0.0
        self._cut: int | None = None
        self._fresh = False
        self._thread = (
            threading.Thread(target=self._work, name=f"{name} delivery", daemon=True)
            if slow
            else None
        )

    def start(self, *, fresh: bool, iteration: int | None) -> None:
        """Open the tracker.

        Args:
            fresh: Whether a new run begins.
            iteration: The iteration that a resumed run continues from; None to append.
        """
        self._fresh, self._cut = fresh, None if fresh else iteration
        if fresh:
            self._backlog.set_aside()
            self._receipts.set_aside()
        else:
            self._receipts.load()
        if not fresh and iteration is not None:
            self._backlog.cut_after(iteration)
            for job in self._backlog.take_waiting(iteration):
                self._backlog.add(job)  # They go first.
        if self._thread is None:
            with _random_state_kept():
                self._open()
        else:
            self._thread.start()

    def write_scalars(
        self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int
    ) -> None:
        self._put(Scalars(mode, dict(scalars), iter, epoch))

    def write_row(self, row: Row) -> None:
        self._put(row)

    def write(self, record: Record) -> None:
        try:
            self._put(portable(record))
        except ValueError as error:  # An invalid image must not end the run.
            log.warning("%s: %s %r is left out: %s", self.name, record.kind, record.name, error)

    def write_config(self, config: Mapping[str, Any]) -> None:
        self._put(Config(dict(config)))

    def cut_after(self, iteration: int) -> None:
        """Drop records after the iteration that the run was rolled back to."""

        def cut() -> None:
            self._backlog.cut_after(iteration)
            self._receipts.cut_after(iteration)
            if self._writer is not None:
                self._writer.cut_after(iteration)

        self._put(cut)

    def sync(self, iteration: int | None = None) -> None:
        """Put the kept and written records on the disk; a slow writer does this in its thread.

        Args:
            iteration: The iteration of a checkpoint that is about to be saved.
        """
        if self._thread is not None:
            # A run that is killed after the save does not record these again.
            self._backlog.note_waiting(list(self._waiting))
        self._put(lambda: self._sync_files(iteration))

    def close(self) -> None:
        """Deliver the remaining records, wait at most `patience` seconds, and log failures."""
        if self._thread is None:
            self._finish()
        elif self._thread.is_alive():
            self._jobs.put(None)
            self._thread.join(self.patience)
        in_time = self._thread is None or not self._thread.is_alive()
        while not self._jobs.empty():  # Jobs that the thread did not reach.
            job = self._jobs.get_nowait()
            if job is not None and not callable(job):
                self._keep(job)
        self._report(in_time)

    def _sync_files(self, iteration: int | None) -> None:
        if iteration is not None:
            self._receipts.forget_before_saves(iteration, self._backlog.noted_from)
        self._backlog.sync()
        if self._writer is not None:
            self._writer.sync()

    def _put(self, job: Job | Callable[[], object]) -> None:
        if self._thread is None:
            self._do(job)
            return
        if not callable(job):
            self._waiting.append(job)
        self._jobs.put(job)

    def _work(self) -> None:
        self._open()
        while (job := self._jobs.get()) is not None:
            self._do(job)
            if not callable(job):
                self._waiting.popleft()
        self._finish()

    def _do(self, job: Job | Callable[[], object]) -> None:
        if callable(job):
            self._try(job)
        elif not self._open() or not self._try(lambda: self._hand_over(job)):
            self._keep(job)

    def _hand_over(self, job: Job) -> None:
        """Pass the part of a job to the writer that the tracker does not have."""
        writer = self._writer
        assert writer is not None
        if type(writer).cut_after is not Writer.cut_after:  # It drops repeated points.
            hand_over(job, writer)
            return
        missing = self._receipts.undelivered(job)
        if missing is None:
            return
        can_be_asked = type(writer).holds is not Writer.holds
        if can_be_asked and self._receipts.is_uncertain(missing) and _is_held(missing, writer):
            self._receipts.add(missing)
            return
        if can_be_asked:
            self._receipts.begin(missing)
        hand_over(missing, writer)
        self._receipts.add(missing)

    def _keep(self, job: Job) -> None:
        try:
            with self._keeping:
                self._backlog.add(job)
        except OSError:  # Counted here and reported when the run ends.
            self._lost += 1

    def _open(self) -> bool:
        """Open the writer and deliver older records; return whether it is ready for new ones."""
        if self._clock() < self._try_at:
            return False
        if self._writer is None and not self._try(self._make_writer):
            return False
        return not self._backlog or self._try(lambda: self._backlog.deliver(self._hand_over))

    def _make_writer(self) -> None:
        writer = self._make()
        if self._fresh:
            writer.set_aside()
        elif self._cut is not None:
            writer.cut_after(self._cut)
        self._writer = writer

    def _finish(self) -> None:
        """Try to deliver the backlog once more, then close the writer."""
        self._try_at = 0.0
        self._open()
        if self._writer is not None:
            self._writer.failed = self.failed
            self._try(self._writer.close)

    def _try(self, function: Callable[[], object]) -> bool:
        try:
            function()
        except Exception as error:  # A failing tracker must not end the run.
            if isinstance(error, HooklineError) and self._thread is None:
                raise  # A user error, such as a package that is not installed.
            self._try_at = self._clock() + self.retry_after
            if not self._warned:
                self._warned = True
                text = mask_text(f"{type(error).__name__}: {error}".splitlines()[0][:300])
                log.warning(
                    "%s fails (%s); training continues, and undelivered records are kept in %s",
                    self.name,
                    text,
                    self._backlog.path,
                )
            return False
        return True

    def _report(self, in_time: bool) -> None:
        iterations, count = self._backlog.iterations(), len(self._backlog)
        self._backlog.close()
        self._receipts.close()
        if count:
            span = (
                f", reports of iterations {iterations[0]} to {iterations[-1]} among them"
                if iterations
                else ""
            )
            advice = "resuming the run delivers them"
            log.warning(
                "%s: %d records were not delivered%s; they are kept in %s, %s",
                self.name,
                count,
                span,
                self._backlog.path,
                advice,
            )
        elif not in_time:
            log.warning(
                "%s did not answer in time at the end of the run; its last records may be missing",
                self.name,
            )
        elif self._warned:
            log.warning("%s failed for a while; all records were delivered in the end", self.name)
        if self._lost:
            log.warning(
                "%s: %d records are lost: there was no space to keep them", self.name, self._lost
            )
        if self._writer is not None and (missing := self._writer.missing()):
            log.warning("%s: %s", self.name, missing)


def _is_held(job: Job, writer: Writer) -> bool:
    """Return whether a tracker has a job. It takes the values of a job together."""
    if not isinstance(job, Scalars | Row):
        return False
    name, value = next(iter(job.values.items()))
    if isinstance(job, Scalars):  # The times in it differ if a resumed run repeats it.
        return writer.holds(job.mode, name, job.iter)
    return writer.holds(job.mode, name, job.step, value)


@contextmanager
def _random_state_kept() -> Iterator[None]:
    """Restore the random state afterwards: libraries draw random numbers for names and ids."""
    numpy = sys.modules.get("numpy")
    before = random.getstate(), torch.get_rng_state(), numpy.random.get_state() if numpy else None
    try:
        yield
    finally:
        random.setstate(before[0])
        torch.set_rng_state(before[1])
        if numpy is not None:
            numpy.random.set_state(before[2])
