"""The table of loaders in docs/resume.md comes from the loaders that the tests run."""

from __future__ import annotations

from collections import Counter

from scripts.docs.resume_table import PAGE, with_table
from tests.data.loader_table import ROWS
from tests.data.loaders import MAP_STYLE, OTHERS, STREAMS


def test_the_committed_table_is_made_from_the_loaders_of_the_tests() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run: python -m scripts.docs.resume_table"


def test_every_loader_of_the_tests_belongs_to_one_row() -> None:
    documented = Counter(name for row in ROWS for name in row.loaders)
    assert documented == Counter([*MAP_STYLE, *STREAMS, *OTHERS])
