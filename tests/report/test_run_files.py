"""Files of a run that may be missing or damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from hookline.report.run_files import (
    MAX_DEPTH,
    MAX_TEXT_BYTES,
    parse_settings,
    read_checkpoints,
    read_costs,
    read_object,
    read_text,
)


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "missing"
    assert (read_text(path), read_object(path), read_costs(path)) == ("", {}, None)
    assert read_checkpoints(tmp_path, None) == ([], [])


def test_only_the_beginning_of_a_large_text_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "large", b"\xff" + b"x" * MAX_TEXT_BYTES)
    assert read_text(path) == "\ufffd" + "x" * (MAX_TEXT_BYTES - 1)


@pytest.mark.parametrize("text", ["", "{", "[1]", "[" * 100_000])
def test_a_file_that_holds_no_object_is_an_empty_one(tmp_path: Path, text: str) -> None:
    assert read_object(write(tmp_path / "status.json", text)) == {}


def test_costs_need_a_list_of_hooks(tmp_path: Path) -> None:
    assert read_costs(write(tmp_path / "a.json", '{"hooks": 1}')) is None
    assert read_costs(write(tmp_path / "b.json", '{"hooks": []}')) == {"hooks": []}


def test_settings_have_dotted_names() -> None:
    assert parse_settings("a: {b: 1}\nc: x") == {"a.b": "1", "c": "x"}


DEEP = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)


@pytest.mark.parametrize("config", ["a: [", "- 1", "a: &x 1\nb: *x", f"a: {DEEP}"])
def test_other_configs_have_no_settings(config: str) -> None:
    assert parse_settings(config) == {}


def test_a_damaged_manifest_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path / "checkpoints.json", "{")
    entries, problems = read_checkpoints(tmp_path, None)
    assert entries == []
    assert [problem["level"] for problem in problems] == ["error"]
