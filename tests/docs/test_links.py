"""The links of all pages: to other pages, to sections, to pictures and to other sites."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from scripts.docs.site import read_site
from tests.docs.pages import BLOCK, DOCS, READMES, ROOT, name_of, read, without_code

LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)]*))?\)")
ADDRESS = re.compile(r"\]\((\w+:[^)\s]*)\)")


def all_pages() -> dict[Path, str]:
    """Return all pages by path, with the parts that are made when the site is built."""
    site = read_site()
    paths = [*READMES, ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
    paths += sorted((ROOT / "examples").rglob("*.md"))
    pages = {path: site.fill(read(path)) for path in paths}
    for path, text in site.hook_pages.items():
        pages[DOCS / path] = text
    return pages


PAGES = all_pages()
MADE_PICTURES = {DOCS / path for path in read_site().curves()}


def test_links_to_pages_and_sections_lead_somewhere() -> None:
    broken = []
    for page, text in PAGES.items():
        for path, anchor in LINK.findall(text):
            if "://" not in path and not leads_somewhere(page, path, anchor):
                broken.append(f"{name_of(page)}: {path}#{anchor}")
    assert broken == []


def leads_somewhere(page: Path, path: str, anchor: str) -> bool:
    target = page
    if path:
        target = Path(os.path.normpath(page.parent / path))
    if target in PAGES:
        return not anchor or anchor in anchors_of(PAGES[target])
    return target in MADE_PICTURES or target.exists()


def anchors_of(text: str) -> set[str]:
    """Return the anchors of a page: of its headings, as the site and GitHub make them, and explicit ones."""
    text = without_code(text)
    anchors = set(re.findall(r'<a id="([^"]+)">', text))
    for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        anchors.add(re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-"))
    return anchors


def test_links_to_other_sites_are_well_formed() -> None:
    malformed = []
    for page, text in PAGES.items():
        for address in ADDRESS.findall(without_code(text)):
            parts = urlsplit(address)
            if parts.scheme != "https" or not re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc):
                malformed.append(f"{name_of(page)}: {address}")
    assert malformed == []


def test_commands_that_begin_with_make_are_targets() -> None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    unknown = []
    for page, text in PAGES.items():
        commands = re.findall(r"`make ([\w-]+)", text)
        for _, code in BLOCK.findall(text):
            commands += re.findall(r"^(?:\$ )?make ([\w-]+)", code, re.MULTILINE)
        for name in commands:
            if name not in targets:
                unknown.append(f"{name_of(page)}: make {name}")
    assert unknown == []


def test_owned_paths_exist() -> None:
    lines = (ROOT / ".github" / "CODEOWNERS").read_text(encoding="utf-8").splitlines()
    paths = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert len(paths) >= 5
    assert [path for path in paths if not (ROOT / path.strip("/")).exists()] == []
