"""The promises of the documentation, and the tests that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks import all_failures

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"`((?:tests|scripts)/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("page", ["security.md", "resume.md"])
def test_every_test_that_a_promise_names_exists(page: str) -> None:
    named = NAMED.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert len(named) > 5
    with all_failures() as check:
        for file, function in named:
            with check(f"{file}::{function}"):
                text = (ROOT / file).read_text(encoding="utf-8")
                assert file.startswith("scripts/") or f"\ndef {function}(" in text


@pytest.mark.parametrize("page", ["security.md", "resume.md"])
def test_every_promise_in_a_table_names_a_test(page: str) -> None:
    rows = list(promises((ROOT / "docs" / page).read_text(encoding="utf-8")))
    assert len(rows) > 10
    with all_failures() as check:
        for row in rows:
            with check(row):
                last_cell = row.strip("| ").split(" | ")[-1]
                assert any(function for _, function in NAMED.findall(last_cell))


def promises(text: str) -> Iterator[str]:
    """Yield the rows of tables whose last column is called `test`."""
    is_inside = False
    for line in text.splitlines():
        if line.endswith("| test |"):
            is_inside = True
        elif not line.startswith("|"):
            is_inside = False
        elif is_inside and not line.startswith("| ---"):
            yield line
