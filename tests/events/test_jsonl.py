from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from hookline.events.jsonl import JSONLinesWriter
from hookline.events.outbox import Record, Row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


@pytest.fixture
def writer(path: Path):
    writer = JSONLinesWriter(path)
    yield writer
    writer.close()


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_means_have_no_step(writer, path) -> None:
    writer.write_scalars("train", {"loss": 0.5, "epoch": 1.5, "bad": math.inf}, iter=50, epoch=2)
    (row,) = rows(path)
    assert isinstance(row.pop("wall_time"), float)
    assert row == {
        "mode": "train",
        "iter": 50,
        "epoch": 2,
        "loss": 0.5,
        "train_epoch": 1.5,
        "bad": "inf",
    }


def test_a_row_has_its_own_step_and_time(writer, path) -> None:
    writer.write_row(Row("val", {"loss": 0.5, "iter": 3.0}, 10, 1, 4, 12.34567))
    assert rows(path) == [
        {
            "mode": "val",
            "iter": 10,
            "epoch": 1,
            "wall_time": 12.346,
            "step": 4,
            "loss": 0.5,
            "val_iter": 3.0,
        }
    ]


def test_only_texts_are_written_as_they_come(writer, path) -> None:
    writer.write(Record("text", "note", "hello", 3, 1, 2.0, global_step=9))
    writer.write(Record("text", "other", "there", 3, 1, 2.0))
    writer.write(Record("image", "picture", None, 3, 1, 2.0))
    first, second = rows(path)
    assert first == {
        "mode": "text",
        "iter": 3,
        "epoch": 1,
        "wall_time": 2.0,
        "step": 9,
        "name": "note",
        "text": "hello",
    }
    assert "step" not in second


def test_a_resume_drops_rows_that_it_writes_again(writer, path) -> None:
    for number in (1, 2, 3):
        writer.write_scalars("train", {"loss": 1.0}, iter=number, epoch=1)
        writer.write_row(Row("train", {"lr": 1.0}, number, 1, number, 0.0))
        writer.write_scalars("val", {"loss": 1.0}, iter=number, epoch=1)
    writer.cut_means_after(2)
    assert [(row["mode"], row["iter"]) for row in rows(path)][-2:] == [("train", 3), ("val", 3)]
    assert len(rows(path)) == 8
    writer.cut_after(1)
    assert {row["iter"] for row in rows(path)} == {1}
    writer.set_aside()
    assert rows(path) == []
    assert len(rows(path.with_name("log.1.jsonl"))) == 3
