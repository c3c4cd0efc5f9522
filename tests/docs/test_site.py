"""The documentation as a site: it builds without a warning and loads nothing from other sites.

`make docs` builds the site and runs these tests on it (HOOKLINE_SITE); `make test` leaves them out, because a build takes as long as
some hundred other tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.docs.site import read_site
from tests.docs.pages import DOCS, ROOT

pytestmark = pytest.mark.exhaustive

LOADED = re.compile(
    r'<(?:script|img|iframe)[^>]* src="https?:|<link[^>]* rel="stylesheet"[^>]* href="https?:'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the built site, or build it. Not with --quiet, which hides warnings from --strict."""
    if "HOOKLINE_SITE" in os.environ:
        return Path(os.environ["HOOKLINE_SITE"]).resolve()
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built(site: Path) -> None:
    pages = [page.relative_to(DOCS) for page in DOCS.rglob("*.md")]
    pages += [Path(path) for path in read_site().hook_pages]
    missing = []
    for page in pages:
        if not (site / page).with_suffix(".html").is_file():
            missing.append(str(page))
    assert missing == []


def test_linked_pages_and_pictures_are_built(site: Path) -> None:
    missing = []
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue  # its links start at the root of a server
        text = page.read_text(encoding="utf-8")
        for target in set(re.findall(r'(?:href|src)="([^"#:]+)(?:#[^"]*)?"', text)):
            if not (page.parent / target).exists():
                missing.append(f"{page.relative_to(site)}: {target}")
    assert missing == []


def test_nothing_is_loaded_from_other_sites(site: Path) -> None:
    """Neither by a page nor by a script at run time: the theme would fetch one to draw diagrams."""
    loading = []
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if LOADED.search(text) or 'class="mermaid"' in text:
            loading.append(str(page.relative_to(site)))
    assert loading == []
