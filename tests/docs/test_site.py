"""The documentation as a site: it builds without a warning, and loads nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "README.zh.md"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--site-dir",
        str(folder),
    ]  # not --quiet, which hides warnings from --strict
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_every_page_is_built(site: Path) -> None:
    wanted = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in PAGES if page.is_relative_to(ROOT / "docs")}
    assert wanted <= {page.relative_to(site) for page in site.rglob("*.html")}


@pytest.mark.slow
def test_pages_and_pictures_that_are_linked_were_built(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue  # its links are those of a server's root
        for target in set(re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', page.read_text(encoding="utf-8"))):
            assert (page.parent / target).exists(), f"{page.relative_to(site)}: {target}"


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Neither by a page itself nor by a script at run time: the theme would fetch one for diagrams made of text."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|img|iframe)[^>]* src="https?:|<link[^>]* rel="stylesheet"[^>]* href="https?:', text)
        assert loaded == [], page.relative_to(site)
        assert 'class="mermaid"' not in text, page.relative_to(site)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_other_sites_are_well_formed(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\((\w+:[^)\s]*)\)", text):
        parts = urlsplit(link)
        assert parts.scheme == "https", link
        assert re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc), link
