"""Receipts: which values a tracker has got, so that a resumed run does not deliver them again."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hookline.events.backlog import Config, Job, Scalars, remove_file
from hookline.events.outbox import Row
from hookline.events.rows import RowFile, iteration_of

Key = tuple[str | int, ...]

SAVES_KEPT = 2  # the newest checkpoint may be torn, and then a run resumes from the one before


class Receipts:
    """The values that were delivered since the last checkpoints, in a file.

    A tracker that cannot drop points keeps those of the iterations after a checkpoint. A run that
    resumes from the checkpoint repeats these iterations and skips their values.

    A delivery that has begun and has no receipt is uncertain: the process was killed, or the
    tracker took the values and its answer was lost.
    """

    def __init__(self, path: Path, run_id: str) -> None:
        self._path = path
        self._run_id = run_id
        self._file: RowFile | None = None
        self._known: Counter[Key] = Counter()
        self._uncertain: set[Key] = set()
        self._saves: list[int] = []

    def load(self) -> None:
        """Read the receipts of the process before."""
        if self._path.exists():
            self._file = RowFile(self._path)
            for row in self._file.rows():
                if row.get("run") != self._run_id:
                    continue
                self._uncertain.update(_keys_in(row, "begun"))
                delivered = _keys_in(row, "keys")
                self._known.update(delivered)
                self._uncertain.difference_update(delivered)

    def begin(self, job: Job) -> None:
        """Note a job that is about to be delivered."""
        keys = list(_keys(job))
        self._uncertain.update(keys)
        self._append(job, "begun", keys)

    def add(self, job: Job) -> None:
        """Note a job that was delivered."""
        keys = list(_keys(job))
        self._uncertain.difference_update(keys)
        self._append(job, "keys", keys)

    def is_uncertain(self, job: Job) -> bool:
        """Return whether the tracker may have a job for which there is no receipt."""
        return any(key in self._uncertain for key in _keys(job))

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
        self._uncertain = {key for key in self._uncertain if int(key[2]) <= iteration}
        if self._file is not None:
            self._file.cut_after(iteration)

    def forget_before_saves(self, iteration: int, noted_from: float) -> None:
        """Drop the receipts that no resumed run needs; a checkpoint is about to be saved.

        Args:
            iteration: The iteration of the checkpoint.
            noted_from: The first iteration of the jobs that a resumed run finds noted as waiting.
        """
        self._saves = [*self._saves[1 - SAVES_KEPT :], iteration]
        if self._file is not None and len(self._saves) == SAVES_KEPT:
            oldest = self._saves[0]
            self._file.drop(
                lambda row: iteration_of(row) <= oldest and iteration_of(row) < noted_from
            )

    def set_aside(self) -> None:
        """Forget the receipts of an earlier run."""
        remove_file(self._path)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _append(self, job: Job, kind: str, keys: list[Key]) -> None:
        if not keys:
            return
        with contextlib.suppress(OSError):  # There is no space: a resumed run delivers it again.
            if self._file is None:
                self._file = RowFile(self._path)
            self._file.append({"run": self._run_id, "iter": job.iter, kind: keys})

    def _take(self, key: Key) -> bool:
        """Return whether a value was delivered, and use its receipt up."""
        if not self._known[key]:
            return False
        self._known[key] -= 1
        return True


def _keys_in(row: Mapping[str, Any], kind: str) -> list[Key]:
    keys = row.get(kind)
    return [tuple(key) for key in keys] if isinstance(keys, list) else []


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
