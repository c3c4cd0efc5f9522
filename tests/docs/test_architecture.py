"""The table "Where do I change X?" names existing files."""

from __future__ import annotations

import re

from tests.docs.pages import DOCS, ROOT, section


def test_every_file_of_the_table_exists() -> None:
    table = section(DOCS / "architecture.md", "## Where do I change X?")
    names = []
    for name in re.findall(r"`([\w/]+(?:\.\w+|/))`", table):
        if "/" in name or name.endswith(".py"):
            names.append(name)
    assert len(names) > 30
    missing = []
    for name in names:
        if not (ROOT / "hookline" / name).exists() and not (ROOT / name).exists():
            missing.append(name)
    assert missing == []
