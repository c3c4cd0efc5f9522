"""The drawings show what the code has."""

from __future__ import annotations

import re
import sys

from hookline.engine import SITES
from scripts.docs.site import read_site
from tests.docs.pages import DOCS, ROOT, read

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def words_of(name: str) -> list[str]:
    """Return the texts of a drawing, in its order."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", read(DOCS / "images" / name))


def test_the_drawing_and_the_text_of_the_loop_have_every_site() -> None:
    drawing = words_of("loop.svg")
    text = read_site().part("loop") + read(DOCS / "sites.md").partition("## All sites")[0]
    assert [name for name in SITES if name not in drawing] == []
    assert [name for name in SITES if not re.search(rf"\b{name}\b", text)] == []


def test_the_guide_states_the_number_of_sites() -> None:
    assert f"There are {len(SITES)}; [Sites]" in read(DOCS / "concepts.md")
    assert f"一共 {len(SITES)} 个" in read(DOCS / "zh" / "concepts.md")


def test_the_layers_of_the_drawing_are_those_of_the_import_contract() -> None:
    contracts = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    parts = []
    for layer in layers:
        parts += [part.strip().removeprefix("hookline.") for part in layer.split("|")]
    assert [word for word in words_of("layers.svg") if word in parts] == parts


def test_the_gallery_shows_every_example_in_small_files() -> None:
    text = read(DOCS / "gallery.md")
    examples = [path.name for path in (ROOT / "examples").glob("*.py")]
    assert [name for name in examples if f"(../examples/{name})" not in text] == []
    pictures = sorted((DOCS / "images" / "gallery").iterdir())
    assert [path.name for path in pictures if f"(images/gallery/{path.name})" not in text] == []
    assert sum(path.stat().st_size for path in pictures) < 1_000_000
