"""Receipts: which values a tracker has got, so that a resumed run does not deliver them again."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hookline.events.backlog import Config, Job, Scalars, remove_file
from hookline.events.outbox import Row
from hookline.events.rows import RowFile, iteration_of

Key = tuple[str | int, ...]

SAVES_KEPT = 2  # the newest checkpoint may be torn, and then a run resumes from the one before


class Receipts:
    """The values that were delivered since the last checkpoints, in a file.

    A tracker that cannot drop points keeps those of the iterations after a checkpoint. A run that
    resumes from the checkpoint repeats these iterations and skips their values.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self._path = path
        self._run_id = run_id
        self._file: RowFile | None = None
        self._known: Counter[Key] = Counter()
        self._saves: list[int] = []

    def load(self) -> None:
        """Read the receipts of the process before."""
        if self._path.exists():
            self._file = RowFile(self._path)
            for row in self._file.rows():
                if row.get("run") == self._run_id and isinstance(row.get("keys"), list):
                    self._known.update(tuple(key) for key in row["keys"])

    def add(self, job: Job) -> None:
        """Note a job that was delivered."""
        keys = list(_keys(job))
        if not keys:
            return
        with contextlib.suppress(OSError):  # There is no space: a resumed run delivers it again.
            if self._file is None:
                self._file = RowFile(self._path)
            self._file.append({"run": self._run_id, "iter": job.iter, "keys": keys})

    def undelivered(self, job: Job) -> Job | None:
        """Return the part of a job that the tracker does not have; None if it has all of it."""
        if not self._known:
            return job
        if isinstance(job, Row):
            values = {
                name: value
                for name, value in job.values.items()
                if not self._take(_row_key(job, name))
            }
            return job._replace(values=values) if values else None
        if any(self._take(key) for key in _keys(job)):
            return None
        return job

    def cut_after(self, iteration: int) -> None:
        """Drop the receipts after an iteration, which a rollback repeats with other values."""
        self._known.clear()
        if self._file is not None:
            self._file.cut_after(iteration)

    def forget_before_saves(self, iteration: int) -> None:
        """Drop the receipts that no resumed run needs; a checkpoint is about to be saved."""
        self._saves = [*self._saves[1 - SAVES_KEPT :], iteration]
        if self._file is not None and len(self._saves) == SAVES_KEPT:
            oldest = self._saves[0]
            self._file.drop(lambda row: iteration_of(row) <= oldest)

    def set_aside(self) -> None:
        """Forget the receipts of an earlier run."""
        remove_file(self._path)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _take(self, key: Key) -> bool:
        """Return whether a value was delivered, and use its receipt up."""
        if not self._known[key]:
            return False
        self._known[key] -= 1
        return True


def _keys(job: Job) -> Iterator[Key]:
    if isinstance(job, Scalars):
        yield ("means", job.mode, job.iter)
    elif isinstance(job, Row):
        for name in job.values:
            yield _row_key(job, name)
    elif not isinstance(job, Config):
        yield (job.kind, job.name, job.iter, job.step)


def _row_key(row: Row, name: str) -> Key:
    return ("row", row.mode, row.iter, row.step, name)
