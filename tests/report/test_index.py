"""The index of a long log."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from hookline.report import index, tail
from hookline.report.collect import RunReader

ROWS = 3000


@pytest.fixture(autouse=True)
def _short_logs_count_as_long(monkeypatch):
    monkeypatch.setattr(index, "MIN_BYTES", 10_000)


def write_log(folder: Path, first: int, last: int, mode: str = "a") -> None:
    generator = random.Random(first)
    with (folder / "log.jsonl").open(mode) as file:
        for step in range(first, last + 1):
            row = {"mode": "train", "iter": step, "epoch": 1, "wall_time": float(step)}
            file.write(json.dumps({**row, "loss": generator.random()}) + "\n")
    with (folder / "hookline.log").open(mode) as file:
        for step in range(first, last + 1):
            level = "WARNING" if step % 1000 == 0 else "INFO"
            file.write(f"2026-01-01 00:00:00,000 {level} step {step}\n")


def read(folder: Path) -> dict:
    data = RunReader(folder).read()
    return {key: data[key] for key in ("curves", "rows", "iter", "epoch", "last", "warnings")}


def make_index(folder: Path) -> None:
    write_log(folder, 1, ROWS, "w")
    RunReader(folder).update_index()
    assert (folder / "log.index").exists()


@pytest.fixture
def bytes_read(monkeypatch):
    """The bytes of logs that are read."""
    count = [0]
    read_pieces = tail.Tail.new_lines

    def new_lines(self):
        for lines in read_pieces(self):
            count[0] += sum(len(line) + 1 for line in lines)
            yield lines

    monkeypatch.setattr(tail.Tail, "new_lines", new_lines)
    return count


def test_an_index_saves_reading_the_logs_and_changes_nothing(tmp_path, bytes_read):
    write_log(tmp_path, 1, ROWS, "w")
    expected = read(tmp_path)
    make_index(tmp_path)
    bytes_read[0] = 0
    assert read(tmp_path) == expected
    assert bytes_read[0] == 0


def test_rows_after_the_index_are_added(tmp_path, bytes_read):
    make_index(tmp_path)
    before = (tmp_path / "log.jsonl").stat().st_size + (tmp_path / "hookline.log").stat().st_size
    write_log(tmp_path, ROWS + 1, ROWS + 50)
    after = (tmp_path / "log.jsonl").stat().st_size + (tmp_path / "hookline.log").stat().st_size
    bytes_read[0] = 0
    found = read(tmp_path)
    assert bytes_read[0] == after - before
    (tmp_path / "log.index").unlink()
    assert read(tmp_path) == found
    assert found["iter"] == ROWS + 50


@pytest.mark.parametrize("first", [1, 2])
def test_the_index_of_another_log_is_ignored(first, tmp_path):
    make_index(tmp_path)
    write_log(tmp_path, first, ROWS if first == 2 else 100, "w")
    found = read(tmp_path)
    (tmp_path / "log.index").unlink()
    assert read(tmp_path) == found


@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_index_is_harmless(seed, tmp_path):
    make_index(tmp_path)
    path = tmp_path / "log.index"
    generator = random.Random(seed)
    data = bytearray(path.read_bytes())
    where = generator.randrange(data.index(b"\n") if seed % 2 else len(data))
    data[where] ^= 1 << generator.randrange(8)
    path.write_bytes(data[: generator.randrange(len(data))] if seed % 5 == 0 else data)
    assert json.dumps(read(tmp_path), allow_nan=False)


def test_a_link_in_place_of_an_index_is_not_followed(tmp_path):
    write_log(tmp_path, 1, ROWS, "w")
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "log.index").symlink_to(tmp_path / "victim")
    RunReader(tmp_path).update_index()
    assert (tmp_path / "victim").read_text() == "precious"
    assert not (tmp_path / "log.index").is_symlink()
