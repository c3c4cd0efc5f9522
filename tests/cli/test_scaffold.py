"""Files from templates."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.errors import CommandLineError
from hookline.cli.scaffold import fill_template, without_existing, write_new_files


def test_a_template_is_filled() -> None:
    text = fill_template("hooks", module="p.hooks.mine", hook="MineHook")
    assert "from p.hooks.mine import MineHook" in text
    assert "$" not in text


def test_a_missing_value_of_a_template_is_an_error() -> None:
    with pytest.raises(KeyError):
        fill_template("hooks", hook="MineHook")


def test_files_are_written_below_a_directory(tmp_path: Path) -> None:
    paths = write_new_files(tmp_path / "new", {"a.txt": "one", "b/c.txt": "two"})
    assert paths == [tmp_path / "new/a.txt", tmp_path / "new/b/c.txt"]
    assert [path.read_text() for path in paths] == ["one", "two"]


def test_nothing_is_written_if_one_file_exists(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("mine")
    with pytest.raises(CommandLineError):
        write_new_files(tmp_path, {"a.txt": "one", "b.txt": "two"})
    assert [path.name for path in tmp_path.iterdir()] == ["b.txt"]
    assert (tmp_path / "b.txt").read_text() == "mine"


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CommandLineError):
        write_new_files(tmp_path / "file", {"a.txt": "one"})


def test_existing_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "b.txt").touch()
    assert without_existing(tmp_path, {"a.txt": "one", "b.txt": "two"}) == {"a.txt": "one"}
