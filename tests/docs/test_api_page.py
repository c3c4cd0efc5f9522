"""The API reference lists every public name."""

from __future__ import annotations

import re
from pathlib import Path

import hookline
from hookline.events import EventStorage, Record, Writer

PAGE = (Path(__file__).parents[2] / "docs" / "api.md").read_text(encoding="utf-8")


def documented() -> set[str]:
    """Return the names of `hookline` that the page documents.

    A name has a directive, a row in the table of registries, a sentence "`X` is another name of",
    or is given as `hookline.X`.
    """
    directives = re.findall(r"^::: hookline\.(\w+)$", PAGE, re.MULTILINE)
    registries = re.findall(r"^\| `([A-Z]+)` \|", PAGE, re.MULTILINE)
    aliases = re.findall(r"`(\w+)` is another name of", PAGE)
    attributes = re.findall(r"`hookline\.(__\w+__)`", PAGE)
    return {*directives, *registries, *aliases, *attributes}


def test_the_page_documents_every_public_name_and_no_other():
    assert documented() == set(hookline.__all__)


def test_the_page_documents_the_events():
    for cls in (EventStorage, Record, Writer):
        assert f"::: hookline.events.{cls.__name__}\n" in PAGE + "\n"


def test_every_directive_names_an_object():
    for path in re.findall(r"^::: (\S+)$", PAGE, re.MULTILINE):
        module, _, name = path.rpartition(".")
        assert hasattr(__import__(module, fromlist=[name]), name), path
