"""Every snippet in the documents runs.

Blocks of a page share a directory and, if they are Python, a namespace. ```python is executed; ```yaml that begins with
`# file: NAME` is written there; `$ hookline …` lines of ```console blocks are run.
"""

from __future__ import annotations

import re
import shlex
import sys
import types
from pathlib import Path

import pytest

from hookline.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "README.zh.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_all_snippets_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType("snippet")
    monkeypatch.setitem(sys.modules, "snippet", module)  # where dataclasses look their module up
    for language, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(text, f"{page.name}", "exec"), vars(module))  # noqa: S102  # our own documents
        elif language == "yaml" and text.startswith("# file: "):
            Path(text.split("\n", 1)[0].removeprefix("# file: ")).write_text(text)
        elif language == "console":
            for line in re.findall(r"^\$ hookline (.*)$", text, re.MULTILINE):
                assert main(shlex.split(line, comments=True)) == 0, line


@pytest.mark.parametrize("page", [*PAGES, *sorted((ROOT / "docs" / "decisions").glob("*.md"))], ids=lambda page: page.name)
def test_links_to_files_hold(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_commands_that_begin_with_make_are_targets():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for page in PAGES:
        for name in re.findall(r"(?:^|`)make ([\w-]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert name in targets, (page.name, name)
