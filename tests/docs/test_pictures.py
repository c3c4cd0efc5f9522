"""What the drawings show is what the code has."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from hookline.cli.docs import sites_page
from hookline.engine import SITES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]


def words_of(name: str) -> list[str]:
    """The texts of a drawing, in its order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", (ROOT / "docs" / "images" / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("site", [site.name for site in SITES])
def test_every_site_is_in_the_drawing_and_in_the_text_of_the_loop(site: str) -> None:
    assert site in words_of("loop.svg")
    assert re.search(rf"\b{site}\b", sites_page().partition("## The loop")[2].partition("## All sites")[0])


def test_the_guide_counts_the_sites_rightly() -> None:
    for page, words in (("concepts.md", f"There are {len(SITES)} of them"), ("zh/concepts.md", f"一共 {len(SITES)} 个")):
        assert words in (ROOT / "docs" / page).read_text(encoding="utf-8")


def test_the_layers_of_the_drawing_are_those_that_imports_are_checked_against() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    parts = [part.strip().removeprefix("hookline.") for layer in layers for part in layer.split("|")]
    assert [word for word in words_of("layers.svg") if word in parts] == parts
