"""Tables that stay tables."""

from __future__ import annotations

import csv

from hookline.events.csv import CSVWriter


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_new_scalar_gets_a_new_column(tmp_path):
    writer = CSVWriter(tmp_path / "metrics.csv")
    writer.write_scalars("train", {"loss": 0.5}, iter=50, epoch=1)
    writer.write_scalars("val", {"accuracy": 0.75}, iter=50, epoch=1)
    writer.write_scalars("train", {"loss": float("nan")}, iter=100, epoch=1)
    rows = read(tmp_path / "metrics.csv")
    assert [(row["mode"], row["iter"], row["loss"], row["accuracy"]) for row in rows] == [
        ("train", "50", "0.5", ""),
        ("val", "50", "", "0.75"),
        ("train", "100", "nan", ""),
    ]


def test_a_resumed_run_leaves_no_double_rows_and_no_cut_line(tmp_path):
    path = tmp_path / "metrics.csv"
    writer = CSVWriter(path)
    for iteration in (10, 20, 30):
        writer.write_scalars("train", {"loss": iteration / 10}, iter=iteration, epoch=1)
    path.write_text(path.read_text() + "train,4")
    again = CSVWriter(path)
    again.cut_after(20)
    again.write_scalars("train", {"loss": 9.0}, iter=30, epoch=1)
    assert [(row["iter"], row["loss"]) for row in read(path)] == [
        ("10", "1.0"),
        ("20", "2.0"),
        ("30", "9.0"),
    ]


def test_a_new_run_sets_the_old_table_aside(tmp_path):
    CSVWriter(tmp_path / "metrics.csv").write_scalars("train", {"loss": 1.0}, iter=1, epoch=1)
    writer = CSVWriter(tmp_path / "metrics.csv")
    writer.set_aside()
    writer.write_scalars("train", {"other": 2.0}, iter=1, epoch=1)
    assert read(tmp_path / "metrics.1.csv")[0]["loss"] == "1.0"
    assert list(read(tmp_path / "metrics.csv")[0]) == [
        "mode",
        "iter",
        "epoch",
        "wall_time",
        "other",
    ]


def test_a_new_run_makes_no_table_before_its_first_row(tmp_path):
    writer = CSVWriter(tmp_path / "metrics.csv")
    writer.set_aside()
    writer.cut_after(0)
    assert list(tmp_path.iterdir()) == []
    writer.write_scalars("train", {"loss": 1.0}, iter=1, epoch=1)
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.csv"]


def test_no_column_is_a_formula_and_none_breaks_the_table(tmp_path):
    writer = CSVWriter(tmp_path / "metrics.csv")
    writer.write_scalars("train", {"=1+1": 1.0, 'a,"b"\nc': 2.0, "loss": -0.5}, iter=1, epoch=1)
    row = read(tmp_path / "metrics.csv")[0]
    assert (row["'=1+1"], row['a,"b"\\nc'], row["loss"]) == ("1.0", "2.0", "-0.5")
