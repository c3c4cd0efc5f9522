"""Undelivered records of a tracker, on disk, so that a resumed run can deliver them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hookline.events.outbox import Record, Row
from hookline.events.portable import from_row, to_row
from hookline.events.rows import RowFile, encode, finite, iteration_of
from hookline.events.writer import Writer
from hookline.files import replace_lines


class Scalars(NamedTuple):
    """The scalars of one report."""

    mode: str
    values: dict[str, float]
    iter: int
    epoch: int


class Config(NamedTuple):
    """The configuration of the run."""

    values: dict[str, Any]
    iter: int = 0


Job = Scalars | Row | Config | Record


def hand_over(job: Job, writer: Writer) -> None:
    """Pass one job to a tracker."""
    if isinstance(job, Scalars):
        writer.write_scalars(job.mode, job.values, iter=job.iter, epoch=job.epoch)
    elif isinstance(job, Row):
        writer.write_row(job)
    elif isinstance(job, Config):
        writer.write_config(job.values)
    else:
        writer.write(job)


class Backlog:
    """Jobs in order, in a file that exists only while it has entries."""

    def __init__(self, path: Path, run_id: str) -> None:
        self.path = path
        self.run_id = run_id
        self._notes = self.path_of("waiting")
        self.noted_from = math.inf  # the first iteration of the noted jobs
        self._file: RowFile | None = RowFile(path) if path.exists() else None

    def path_of(self, kind: str) -> Path:
        """Return the path of another file about the same records."""
        stem = self.path.name.removesuffix(".jsonl").removesuffix(".undelivered")
        return self.path.with_name(f"{stem}.{kind}.jsonl")

    def __bool__(self) -> bool:
        return self._file is not None

    def add(self, job: Job) -> None:
        if self._file is None:
            self._file = RowFile(self.path)
        self._file.append({"run": self.run_id, **_row(job)})

    def note_waiting(self, jobs: Sequence[Job]) -> None:
        """Put the scalars of jobs that a thread will deliver on the disk, in another file.

        The next process delivers those that this one did not, if it is killed.
        """
        rows = [_row(job) for job in jobs if isinstance(job, Scalars | Row)]
        if not rows:
            remove_file(self._notes)
            self.noted_from = math.inf
            return
        with contextlib.suppress(OSError):  # There is no space: training continues.
            replace_lines(self._notes, [encode({"run": self.run_id, **row}) for row in rows])
            self.noted_from = min(iteration_of(row) for row in rows)

    def take_waiting(self, iteration: int) -> list[Job]:
        """Return the noted jobs up to an iteration, and remove the note."""
        jobs = []
        if self._notes.exists():
            notes = RowFile(self._notes)
            for row in notes.rows():
                if row.get("run") == self.run_id and iteration_of(row) <= iteration:
                    jobs.append(_job(row))
            notes.remove()
        return jobs

    def deliver(self, hand_over: Callable[[Job], object]) -> int:
        """Deliver all jobs, oldest first, and return their number; on a failure the rest stays."""
        if self._file is None:
            return 0
        rows = [row for row in self._file.rows() if row.get("run") == self.run_id]
        done = 0
        try:
            for row in rows:
                hand_over(_job(row))
                done += 1
        finally:
            if done:
                self._file.replace(rows[done:])
            self._forget_if_empty()
        return done

    def cut_after(self, iteration: int) -> None:
        """Drop the jobs after an iteration, which a resumed run will report again."""
        if self._file is not None:
            self._file.cut_after(iteration)
            self._forget_if_empty()

    def set_aside(self) -> None:
        """Rename the file of an earlier run."""
        remove_file(self._notes)
        if self._file is not None:
            self._file.set_aside()
            self._forget_if_empty()

    def iterations(self) -> list[int]:
        """Return the iterations of the waiting reports."""
        if self._file is None:
            return []
        return [row["iter"] for row in self._file.rows() if row.get("kind") in ("scalars", "row")]

    def __len__(self) -> int:
        return 0 if self._file is None else len(self._file.rows())

    def sync(self) -> None:
        """Return when all jobs are on the disk."""
        if self._file is not None:
            self._file.sync()

    def close(self) -> None:
        remove_file(self._notes)
        if self._file is not None:
            self._file.close()

    def _forget_if_empty(self) -> None:
        if self._file is not None and not self._file.rows():
            self._file.remove()
            self._file = None


def _row(job: Job) -> dict[str, Any]:
    if isinstance(job, Scalars):
        return {"kind": "scalars", **job._asdict(), "values": finite(job.values)}
    if isinstance(job, Row):
        return {"kind": "row", **job._asdict(), "values": finite(job.values)}
    if isinstance(job, Config):
        return {"kind": "config", **job._asdict()}
    return to_row(job)


def _job(row: Mapping[str, Any]) -> Job:
    if row["kind"] == "scalars":
        return Scalars(row["mode"], _numbers(row["values"]), row["iter"], row["epoch"])
    if row["kind"] == "row":
        fields = {name: row[name] for name in Row._fields}
        return Row(**{**fields, "values": _numbers(row["values"])})
    if row["kind"] == "config":
        return Config(row["values"], row["iter"])
    return from_row(row)


def _numbers(values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(value) for name, value in values.items()}


def remove_file(path: Path) -> None:
    """Remove a file if that is possible."""
    with contextlib.suppress(OSError):
        path.unlink()
