"""The last rows of a run's log in a few words, for a list of runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from hookline.duration import format_duration
from hookline.events.rows import RESERVED
from hookline.report.curves import parse_line
from hookline.report.names import LOG

TAIL_BYTES = 20_000  # of a log, for its last rows
MAX_METRICS = 3
MAX_SECONDS = 1e9  # Longer estimates are of no use.

Row = dict[str, Any]


class LastReport(NamedTuple):
    """The last report of a run.

    Attributes:
        position: The epoch and the iteration.
        results: The last training loss, and the metrics of the last validation.
        time_left: The estimate of the last training report, such as `4 min 5 s left`.
        time: The wall time of the last row.
    """

    position: str = ""
    results: str = ""
    time_left: str = ""
    time: float = 0.0


def last_report(folder: Path) -> LastReport:
    """Return the last report in the log of a run; an empty one if there is none."""
    rows = _last_rows(folder)
    if not rows:
        return LastReport()
    last = rows[-1]
    training = _last_of(rows, "train", "loss")
    timed = _last_of(rows, "train", "eta")
    evaluations = [row for row in rows if row.get("mode") in ("val", "test")]
    results = [f"loss {training['loss']:.4g}"] if training else []
    if evaluations:
        results += _describe_metrics(evaluations[-1])
    moment = last.get("wall_time")
    return LastReport(
        f"epoch {last.get('epoch', '?')}, iteration {last['iter']}",
        ", ".join(results),
        describe_time_left(timed["eta"]) if timed else "",
        float(moment) if isinstance(moment, (int, float)) else 0.0,
    )


def describe_time_left(seconds: float) -> str:
    """Return `4 min 5 s left`; an empty text if the estimate is of no use."""
    return f"{format_duration(seconds)} left" if 0 <= seconds <= MAX_SECONDS else ""


def _last_rows(folder: Path) -> list[Row]:
    try:
        with open(folder / LOG, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return []
    rows = [parse_line(line) for line in lines]
    return [row for row in rows if row is not None and "iter" in row]


def _last_of(rows: list[Row], mode: str, name: str) -> Row | None:
    """Return the last row of a mode that has a number of this name."""
    for row in reversed(rows):
        if row.get("mode") == mode and isinstance(row.get(name), float):
            return row
    return None


def _describe_metrics(row: Row) -> list[str]:
    metrics = []
    for name, value in row.items():
        if name not in RESERVED and isinstance(value, float):
            metrics.append(f"{name} {value:.4g}")
    return metrics[:MAX_METRICS]
