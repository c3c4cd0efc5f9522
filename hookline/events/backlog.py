"""Undelivered records of a tracker, on disk, so that a resumed run can deliver them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from hookline.events.outbox import Record, Row
from hookline.events.portable import from_row, to_row
from hookline.events.rows import RowFile, finite
from hookline.events.writer import Writer


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
        self._run_id = run_id
        self._file: RowFile | None = RowFile(path) if path.exists() else None

    def __bool__(self) -> bool:
        return self._file is not None

    def add(self, job: Job) -> None:
        if self._file is None:
            self._file = RowFile(self.path)
        self._file.append({"run": self._run_id, **_row(job)})

    def deliver(self, writer: Writer) -> int:
        """Deliver all jobs, oldest first, and return their number; on a failure the rest stays."""
        if self._file is None:
            return 0
        rows = [row for row in self._file.rows() if row.get("run") == self._run_id]
        done = 0
        try:
            for row in rows:
                hand_over(_job(row), writer)
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
