from __future__ import annotations

import pytest

from hookline.cli.docs import PAGE, sites_page
from hookline.cli.main import main
from hookline.engine import SITES
from tests.cli.helpers import ROOT


def test_every_site_is_listed_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sites"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [tuple(line.split(maxsplit=1)) for line in lines] == [(site.name, site.meaning) for site in SITES]


def test_the_page_of_sites_is_up_to_date() -> None:
    assert (ROOT / PAGE).read_text(encoding="utf-8") == sites_page(), "run: python -m hookline.cli.docs"
