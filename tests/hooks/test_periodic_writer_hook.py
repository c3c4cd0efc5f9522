"""Any writers, at a period of their own."""

from __future__ import annotations

import csv
import json

import pytest

from hookline.events import Writer
from hookline.hooks import HOOKS, PeriodicWriterHook
from tests.events.parts import BreakAt, PutEverything, image_run
from tests.helpers import batches, make_runner
from tests.problems import logged, raises_problem


class Collect(Writer):
    def __init__(self):
        self.rows, self.records, self.closed = [], [], 0

    def write_scalars(self, mode, scalars, *, iter, epoch):
        self.rows.append((mode, iter, epoch, dict(scalars)))

    def write(self, record):
        self.records.append((record.kind, record.name))

    def close(self):
        self.closed += 1


def test_every_period_and_after_the_last_iteration_and_then_they_are_closed(tmp_path):
    writer = Collect()
    image_run(tmp_path, PeriodicWriterHook([writer], period=8), PutEverything())
    assert [(mode, iteration, epoch) for mode, iteration, epoch, _ in writer.rows] == [
        ("train", 8, 1),
        ("val", 10, 1),
        ("train", 16, 2),
        ("val", 20, 2),
        ("train", 20, 2),
    ]
    assert {"loss", "lr", "time"} <= set(writer.rows[0][3])
    assert [kind for kind, _ in writer.records] == ["image", "histogram", "text", "artifact"]
    assert writer.closed == 1


def test_names_and_configs_write_to_the_work_directory_and_on_resume_without_double_rows(tmp_path):
    hook = {
        "type": "PeriodicWriter",
        "writers": ["csv", {"type": "jsonl", "path": "own.jsonl"}],
        "period": 3,
    }
    with pytest.raises(RuntimeError):
        image_run(tmp_path, hook, BreakAt(17))
    image_run(tmp_path, hook, resume="auto")
    with (tmp_path / "metrics.csv").open(newline="") as file:
        table = [(row["mode"], int(row["iter"])) for row in csv.DictReader(file)]
    lines = [json.loads(line) for line in (tmp_path / "own.jsonl").read_text().splitlines()]
    assert [(row["mode"], row["iter"]) for row in lines] == table
    assert [iteration for mode, iteration in table if mode == "train"] == [3, 6, 9, 12, 15, 18, 20]


def test_an_evaluation_adds_to_the_table_of_the_training(tmp_path):
    hook = {"type": "PeriodicWriter", "writers": ["csv"], "period": 5}
    image_run(tmp_path, hook, epochs=1)
    make_runner(tmp_path, hook, test_loader=batches(1)).test()
    image_run(tmp_path, hook, resume="auto")
    with (tmp_path / "metrics.csv").open(newline="") as file:
        table = [(row["mode"], int(row["iter"])) for row in csv.DictReader(file)]
    assert table == [
        ("train", 5),
        ("train", 10),
        ("val", 10),
        ("test", 0),
        ("train", 15),
        ("train", 20),
        ("val", 20),
    ]
    assert [path.name for path in sorted(tmp_path.rglob("*.csv"))] == ["metrics.csv"]


def test_a_writer_that_fails_stops_nothing(tmp_path, caplog):
    class Broken(Collect):
        def write_scalars(self, mode, scalars, *, iter, epoch):
            raise OSError("full")

    good = Collect()
    runner = image_run(tmp_path, PeriodicWriterHook([Broken(), good], period=5))
    assert runner.iter == 20
    assert len(good.rows) == 6
    assert logged(caplog, "PeriodicWriterHook (Broken)", "OSError: full")


def test_an_unknown_writer_is_rejected_when_the_hook_is_built():
    with raises_problem(nearest="csv"):
        HOOKS.build({"type": "PeriodicWriterHook", "writers": ["cvs"]})
    with raises_problem(component="PeriodicWriterHook", parameter="writers", value=3):
        HOOKS.build({"type": "PeriodicWriterHook", "writers": [3]})
