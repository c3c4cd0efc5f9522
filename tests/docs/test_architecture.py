"""The page that says where to change what names files that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_file_of_the_table_is_there() -> None:
    table = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Where do I change X?")[2].partition("\n## ")[0]
    named = [name for name in re.findall(r"`([\w/]+(?:\.\w+|/))`", table) if "/" in name or name.endswith(".py")]
    assert len(named) > 30
    assert [name for name in named if not (ROOT / "hookline" / name).exists() and not (ROOT / name).exists()] == []
