from __future__ import annotations

from pathlib import Path

import pytest

from hookline.cli.docs import PAGES
from hookline.cli.main import main
from hookline.engine import SITES
from tests.cli.helpers import ROOT


def test_every_site_is_listed_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sites"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [tuple(line.split(maxsplit=1)) for line in lines] == [(site.name, site.meaning) for site in SITES]


@pytest.mark.parametrize("path", PAGES, ids=str)
def test_a_page_made_from_the_code_is_up_to_date(path: Path) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == PAGES[path](), "run: python -m hookline.cli.docs"
