"""The pages of the documentation, and how tests read them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
READMES = [ROOT / "README.md", ROOT / "README.zh.md"]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    """Return a page's path as tests print it."""
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def without_code(text: str) -> str:
    """Return the text of a page without its code blocks."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def section(page: Path, heading: str) -> str:
    """Return the text between a heading and the next one of its level, without code blocks."""
    level = heading.partition(" ")[0]
    return without_code(read(page)).partition(heading)[2].partition(f"\n{level} ")[0]
