"""Curves from a growing log."""

from __future__ import annotations

import json

from hookline.report.curves import CurveReader


def write(path, rows, mode="w"):
    with path.open(mode) as file:
        for row in rows:
            text = row if isinstance(row, str) else json.dumps(row)
            file.write(f"{text}\n")


def row(step, loss, mode="train"):
    return {"mode": mode, "iter": step, "epoch": 1, "wall_time": 100.0 + step, "loss": loss}


def test_new_rows_are_added_and_a_truncated_log_is_read_from_its_beginning(tmp_path):
    path = tmp_path / "log.jsonl"
    reader = CurveReader(path)
    reader.update()
    assert reader.thinned() == {}
    write(path, [row(1, 3.0), row(2, 2.0), row(2, 2.5, "val")])
    reader.update()
    write(path, [row(3, 1.0)], "a")
    reader.update()
    curves = reader.thinned()
    assert (curves["train/loss"]["x"], curves["train/loss"]["y"]) == ([1, 2, 3], [3.0, 2.0, 1.0])
    assert curves["val/loss"]["y"] == [2.5]
    assert (reader.rows, reader.last_iter, reader.first_time, reader.last_time) == (
        4,
        3,
        101.0,
        103.0,
    )
    write(path, [row(1, 3.0), row(2, 9.0)])
    reader.update()
    assert reader.thinned()["train/loss"]["y"] == [3.0, 9.0]
    assert list(reader.thinned()) == ["train/loss"]


def test_torn_and_foreign_lines_are_ignored(tmp_path):
    path = tmp_path / "log.jsonl"
    deep = "[" * 100_000
    write(
        path,
        [
            row(1, 1.0),
            '{"mode": "train", "it',
            "[1, 2]",
            "",
            "null",
            deep,
            {"mode": "text", "iter": 1},
            {"iter": "x", "mode": "val"},
            {"iter": 10**30, "mode": "val", "loss": 1.0},
            {"iter": 1, "mode": "val", "big": 10**400},
            row(2, 2.0),
        ],
    )
    reader = CurveReader(path)
    reader.update()
    assert reader.thinned()["train/loss"]["y"] == [1.0, 2.0]


def test_values_that_are_not_finite_are_counted_and_not_drawn(tmp_path):
    path = tmp_path / "log.jsonl"
    write(
        path,
        [
            row(1, 1.0),
            row(2, "nan"),
            row(3, "inf"),
            '{"mode": "train", "iter": 4, "loss": NaN}',
            row(5, True),
            row(6, "text"),
        ],
    )
    reader = CurveReader(path)
    reader.update()
    curve = reader.thinned()["train/loss"]
    assert curve["y"] == [1.0]
    assert curve["not_finite"] == {"count": 3, "first": 2}


def test_points_are_sorted(tmp_path):
    write(tmp_path / "log.jsonl", [row(5, 5.0), row(3, 3.0), row(4, 4.0)])
    reader = CurveReader(tmp_path / "log.jsonl")
    reader.update()
    assert reader.thinned()["train/loss"]["x"] == [3, 4, 5]


def test_many_curves_share_the_points_of_a_page(tmp_path):
    write(
        tmp_path / "log.jsonl",
        [
            {"mode": "train", "iter": step, **{f"s{n}": 1.0 * step for n in range(40)}}
            for step in range(600)
        ],
    )
    reader = CurveReader(tmp_path / "log.jsonl")
    reader.update()
    curves = reader.thinned(limit=10_000)
    assert all(len(curve["x"]) <= 250 and curve["count"] == 600 for curve in curves.values())
