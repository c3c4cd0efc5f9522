"""Every claim of the README and of the comparison links to the test or result behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checks import all_failures
from tests.docs.pages import DOCS, READMES, ROOT, read

# A link to a test ends in `#` and the name of its function.
LINK = re.compile(r"\]\((?:\.\./)*((?:tests|scripts|benchmarks)/[^)#\s]*)(?:#(\w+))?\)")
PAGES = [*READMES, DOCS / "compared.md"]


def rows(text: str, heading: str) -> Iterator[str]:
    """Yield the rows of the table whose first line begins with a heading."""
    lines = text.partition(f"\n{heading}")[2].splitlines()[2:]
    for line in lines:
        if not line.startswith("|"):
            return
        yield line


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        (READMES[0], "| problem | Hookline |"),
        (READMES[1], "| 常见问题 | Hookline 的做法 |"),
        (DOCS / "compared.md", "| | Hookline |"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_every_claim_has_evidence(page: Path, heading: str) -> None:
    claims = list(rows(read(page), heading))
    assert len(claims) >= 7
    assert [claim for claim in claims if not LINK.search(claim)] == []


def test_the_counts_and_the_speed_of_the_comparison_have_evidence() -> None:
    text = read(DOCS / "compared.md")
    (ours,) = [row for row in rows(text, "| framework |") if row.startswith("| Hookline |")]
    assert LINK.search(ours)
    assert len(LINK.findall(text.partition("## Speed")[2])) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_linked_tests_and_results_exist(page: Path) -> None:
    links = LINK.findall(read(page))
    assert len(links) >= 7
    with all_failures() as check:
        for path, function in links:
            with check(f"{path}#{function}"):
                text = read(ROOT / path)
                if path.startswith("tests/"):
                    assert function
                    assert f"\ndef {function}(" in text
