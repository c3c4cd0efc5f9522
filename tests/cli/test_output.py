"""Tables, labels and JSON."""

from __future__ import annotations

import json
import math
import sys

import pytest

from hookline.cli.output import (
    chart_columns,
    hook_label,
    print_json,
    print_table,
    priority_label,
)
from hookline.engine import BaseHook, Priority


def test_columns_are_aligned_without_trailing_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([("a", "long cell", "x"), ("bbb", "c", "")], headers=("one", "two", "three"))
    assert capsys.readouterr().out == "one  two        three\na    long cell  x\nbbb  c\n"


def test_an_empty_table_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([])
    assert capsys.readouterr().out == ""


def test_brackets_are_no_markup_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_table([("name", "[red]text")], headers=("one", "two"))
    assert "[red]text" in capsys.readouterr().out


def test_json_has_no_nan(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": [math.nan, 1.5], "b": (math.inf,), "c": "ü"})
    text = capsys.readouterr().out
    assert json.loads(text) == {"a": ["nan", 1.5], "b": ["inf"], "c": "ü"}
    assert "ü" in text


@pytest.mark.parametrize(("columns", "expected"), [(20, 30), (80, 64), (500, 100)])
def test_a_chart_fits_the_terminal(
    columns: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert chart_columns() == expected


def test_a_hook_with_a_name_is_shown_with_its_class() -> None:
    class MyHook(BaseHook):
        pass

    hook = MyHook()
    assert hook_label(hook) == "MyHook"
    hook.name = "mine"
    assert hook_label(hook) == "mine (MyHook)"


@pytest.mark.parametrize(
    ("value", "label"), [(Priority.NORMAL, "NORMAL 50"), ("LOW", "LOW 70"), (33, "33")]
)
def test_a_priority_is_shown_with_its_name(value: object, label: str) -> None:
    assert priority_label(value) == label  # type: ignore[arg-type]
