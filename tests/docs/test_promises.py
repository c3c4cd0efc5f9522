"""The promises of the documentation, and the tests that they name."""

from __future__ import annotations

import re
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
                assert not function or f"def {function}(" in text
