"""The page about the architecture names existing files, and their sizes."""

from __future__ import annotations

import re
import sys

from tests.docs.pages import DOCS, ROOT, section

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOLERANCE = 15  # lines


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


def test_the_files_to_read_first_have_about_the_stated_size() -> None:
    table = section(DOCS / "architecture.md", "## Read it in this order")
    rows = re.findall(r"\| `(engine/\w+\.py)` \| (\d+) \|", table)
    names = [name.removeprefix("engine/").removesuffix(".py") for name, _ in rows]
    assert names == ["sites", "loop", "hook", "requests", "runner"]
    for name, stated in rows:
        lines = len((ROOT / "hookline" / name).read_text(encoding="utf-8").splitlines())
        assert abs(lines - int(stated)) <= TOLERANCE, f"{name} has {lines} lines"


def test_the_stated_limit_of_the_engine_is_the_enforced_one() -> None:
    table = section(DOCS / "architecture.md", "## Read it in this order")
    stated = re.search(r"at most ([\d,]+) lines", table)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    limit = settings["tool"]["hookline"]["sizes"]["hookline/engine"]["lines"]
    assert stated is not None
    assert int(stated[1].replace(",", "")) == limit
