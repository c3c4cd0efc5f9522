"""The form of the comparison with other frameworks; `benchmarks/claims.py` checks its statements about speed."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, read

PAGE = read(DOCS / "compared.md")


def test_the_page_repeats_no_figures_of_the_benchmarks() -> None:
    speed = PAGE.partition("## Speed")[2]
    assert "](benchmarks.md)" in speed
    assert not re.search(r"\d\.\d", speed)


def test_the_page_begins_with_what_others_do_better() -> None:
    headings = re.findall(r"^## (.*)$", PAGE, re.MULTILINE)
    assert headings[0] == "Where others are the better choice"
    assert PAGE.partition(headings[1])[0].count("\n| ") > 10
