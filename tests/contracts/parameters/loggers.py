"""Parameters of hooks that log a run's progress: observed are the rows, lines and files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from hookline.events import Writer
from hookline.hooks import EvalHook, PeriodicWriterHook
from tests.contracts.parameters.rows import Below, Config, Row, rows
from tests.contracts.training import files_below, train
from tests.helpers import batches

LENGTH: dict[str, Any] = {"train_loader": batches(5), "max_epochs": 2}


def log_rows(config: Config, folder: Path) -> list[Any]:
    """Return the rows of the log file: their places in the run and the names of their values."""
    train(folder, config, EvalHook(), **LENGTH)
    found = []
    for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        place = [row.get(key) for key in ("mode", "iter", "epoch", "step")]
        found.append((place, sorted(row)))
    return found


def all_files(config: Config, folder: Path) -> list[str]:
    """Return all files of a run, also those beside its folder."""
    train(folder, config, **LENGTH)
    return files_below(folder.parent)


def table_rows(config: Config, folder: Path) -> list[str]:
    """Return the iterations that a run's table has rows of."""
    train(folder, config, **LENGTH)
    with (folder / "metrics.csv").open(encoding="utf-8", newline="") as file:
        return [row["iter"] for row in csv.DictReader(file)]


def moments_of(*names: str) -> Any:
    """Return an observation: the iterations in which scalars of these names are recorded."""

    def observe(config: Config, folder: Path) -> dict[str, list[int]]:
        events = train(folder, config, **LENGTH).events
        return {name: [scalar.iter for scalar in events.history(name)] for name in names}

    return observe


def lines_of_file(config: Config, folder: Path) -> dict[str, int]:
    """Return how many lines each log file of a run has."""
    train(folder, config, **LENGTH)
    lines = {}
    for name in files_below(folder, "*.log"):
        lines[name] = len((folder / name).read_text(encoding="utf-8").splitlines())
    return lines


class Collected(Writer):
    """A writer that keeps the kinds, names and iterations of records."""

    def __init__(self) -> None:
        self.records: list[tuple[str, str, int]] = []

    def write(self, record: Any) -> None:
        self.records.append((record.kind, record.name, record.iter))


def records(config: Config, folder: Path) -> list[tuple[str, str, int]]:
    """Return the records other than scalars that reach a writer."""
    writer = Collected()
    train(folder, config, PeriodicWriterHook([writer]), **LENGTH)
    return writer.records


TIMES = moments_of("time", "time/iters_per_s", "eta")

LOGGER = [
    *rows(
        log_rows,
        {"interval": 2},
        interval=(2, 3),
        log_metric_by_epoch=(True, False),
        ignore_last=(True, False),
        means=(None, {"loss_3": {"of": "loss", "over": 3}}),
    ),
    *rows(log_rows, {"interval": 4}, by_epoch=(True, False)),
]

ROWS: dict[str, list[Row]] = {
    "LoggerHook": LOGGER,
    "TextLoggerHook": [
        *LOGGER,
        *rows(all_files, out_dir=(None, Below("../copies"))),
        *rows(
            all_files, {"out_dir": Below("../copies")}, out_suffix=((".jsonl", ".log"), ".jsonl")
        ),
    ],
    "IterTimerHook": [
        *rows(TIMES, {"warmup_iter": 1}, interval=(2, 3)),
        *rows(TIMES, {"interval": 2}, log_eta=(True, False)),
        *rows(TIMES, {"ignore_warmup_time": True}, warmup_iter=(3, 5)),
        *rows(TIMES, ignore_warmup_time=(False, True)),
    ],
    "PeriodicWriterHook": [
        *rows(table_rows, period=(2, 3)),
        *rows(all_files, writers=(["csv"], [{"type": "csv", "path": "curves.csv"}])),
    ],
    "TimeTrackingHook": rows(
        lines_of_file,
        frequency=(1, 2),
        log_to_file=(True, False),
        log_path=("time_tracking.log", "times.log"),
    ),
    "HistogramHook": rows(
        records, {"interval": 2}, interval=(2, 3), weights=(True, False), gradients=(True, False)
    ),
}
