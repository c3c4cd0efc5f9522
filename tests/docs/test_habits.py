"""The pages for users of Lightning and Hugging Face have twenty pairs of snippets each.

`test_snippets.py` runs the half of Hookline, `tests/compat_foreign/test_habits.py` the other one.
"""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import BLOCK, DOCS, read


@pytest.mark.parametrize("page", ["from-lightning.md", "from-hugging-face.md"])
def test_every_habit_is_a_pair_of_snippets(page: str) -> None:
    habits = re.split(r"^## (?=\d)", read(DOCS / page), flags=re.MULTILINE)[1:]
    assert len(habits) >= 20
    for number, habit in enumerate(habits, start=1):
        assert habit.startswith(f"{number}. ")
        assert [language for language, _ in BLOCK.findall(habit)] == ["py", "python"], habit
