"""`hookline sites`: the list of sites."""

from __future__ import annotations

import pytest

from hookline.cli.main import main
from hookline.engine import SITES


def test_every_site_is_listed_with_its_meaning(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sites"]) == 0
    lines = capsys.readouterr().out.splitlines()[1:]
    assert [tuple(line.split(maxsplit=1)) for line in lines] == list(SITES.items())
