"""Every row of the table of requirements holds."""

from __future__ import annotations

import pytest

from tests.documents.table import GUIDE, REQUIREMENTS, Section, load_sections

SECTIONS = load_sections()


@pytest.mark.parametrize("section", SECTIONS, ids=[section.title for section in SECTIONS])
def test_every_row_of_a_section_holds(section: Section) -> None:
    problems = {row.requirement: row.problem() for row in section.rows}
    failed = {requirement: problem for requirement, problem in problems.items() if problem}
    assert failed == {}


def test_the_table_covers_both_documents() -> None:
    counts = {REQUIREMENTS: 0, GUIDE: 0}
    for section in SECTIONS:
        counts[section.document] += len(section.rows)
    assert counts[REQUIREMENTS] >= 377
    assert counts[GUIDE] >= 67
