from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from hookline.events.rows import RowFile, finite, free_names, iteration_of, set_aside


@pytest.fixture
def file(tmp_path: Path):
    file = RowFile(tmp_path / "log.jsonl")
    yield file
    file.close()


def fill(file: RowFile, *iterations: int) -> None:
    for iteration in iterations:
        file.append({"iter": iteration})


def iterations(file: RowFile) -> list[int]:
    return [row["iter"] for row in file.rows()]


def test_each_row_is_on_its_line_at_once(file) -> None:
    file.append({"iter": 1, "text": "ü"})
    assert file.path.read_text(encoding="utf-8") == '{"iter": 1, "text": "ü"}\n'


def test_rows_after_an_iteration_are_dropped_and_counted(file) -> None:
    fill(file, 1, 2, 3, 2)
    assert file.cut_after(2) == 1
    assert iterations(file) == [1, 2, 2]
    assert file.cut_after(2) == 0
    fill(file, 3)
    assert iterations(file) == [1, 2, 2, 3]


@pytest.mark.parametrize("line", ['{"iter": 2, "lo', "[1]", "3", "[" * 100_000])
def test_a_line_that_is_no_row_is_ignored_and_dropped(file, line: str) -> None:
    fill(file, 1)
    file.file.write(line + "\n")
    assert iterations(file) == [1]
    assert file.drop(lambda row: False) == 1
    assert file.path.read_text(encoding="utf-8") == '{"iter": 1}\n'


def test_all_rows_can_be_replaced(file) -> None:
    fill(file, 1, 2)
    file.replace([{"iter": 7}])
    fill(file, 8)
    assert iterations(file) == [7, 8]


def test_an_earlier_file_is_kept_under_the_first_free_name(file) -> None:
    for number in (1, 2):
        fill(file, number)
        file.set_aside()
        assert iterations(file) == []
        kept = file.path.with_name(f"log.{number}.jsonl")
        assert json.loads(kept.read_text()) == {"iter": number}


def test_an_empty_or_missing_file_is_not_set_aside(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").touch()
    set_aside(tmp_path / "log.jsonl")
    set_aside(tmp_path / "missing.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]


def test_a_removed_file_is_gone(file) -> None:
    fill(file, 1)
    file.remove()
    assert not file.path.exists()
    file.remove()


@pytest.mark.parametrize(
    "row", [None, {}, {"iter": "a"}, {"iter": None}, {"iter": math.nan}, {"iter": 10**400}]
)
def test_a_row_without_an_iteration_belongs_to_the_end(row: object) -> None:
    assert iteration_of(row) == math.inf


def test_the_iteration_of_a_row_is_a_number() -> None:
    assert iteration_of({"iter": "3"}) == 3


def test_numbers_that_json_does_not_have_become_text() -> None:
    scalars = {"a": 1.0, "b": math.nan, "c": -math.inf}
    assert finite(scalars) == {"a": 1.0, "b": "nan", "c": "-inf"}


@pytest.mark.parametrize("name", ["mode", "iter", "epoch", "wall_time", "step"])
def test_a_scalar_with_a_reserved_name_gets_its_mode_in_front(name: str) -> None:
    assert free_names("train", {name: 1.0, "loss": 2.0}) == {f"train_{name}": 1.0, "loss": 2.0}
    scalars = {"loss": 2.0}
    assert free_names("train", scalars) is scalars
