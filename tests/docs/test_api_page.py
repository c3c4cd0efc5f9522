"""The API reference lists every public name, and every name that the documents import."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path

import griffe
import torch

import hookline
from hookline import BaseHook, Runner
from hookline.events import EventStorage, Record, Row, Writer
from tests.docs.pages import BLOCK, DOCS, READMES, read

PAGE = read(DOCS / "api.md")
DIRECTIVES = re.findall(r"^::: (\S+)$", PAGE, re.MULTILINE)
# Parts that have their own page. A page shows what it imports from these.
WITH_THEIR_OWN_PAGE = ("hookline.hooks", "hookline.compat", "hookline.cli", "hookline.visual")


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


def described(cls: type) -> set[str]:
    """Return the parameters and attributes that the docstring of a class describes."""
    sections = griffe.Docstring(inspect.getdoc(cls) or "").parse("google", warnings=False)
    names = set()
    for section in sections:
        if section.kind.value in ("parameters", "attributes"):
            names |= {item.name.lstrip("*") for item in section.value}
    return names


def public(names: object) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def test_the_page_documents_every_public_name_and_no_other():
    assert documented() == set(hookline.__all__)


def test_the_page_documents_the_events():
    for cls in (EventStorage, Record, Row, Writer):
        assert f"hookline.events.{cls.__name__}" in DIRECTIVES


def test_every_directive_names_an_object_with_a_docstring():
    for path in DIRECTIVES:
        module, _, name = path.rpartition(".")
        assert getattr(importlib.import_module(module), name).__doc__, path


def test_every_method_of_a_documented_class_has_a_docstring():
    for path in DIRECTIVES:
        module, _, name = path.rpartition(".")
        found = getattr(importlib.import_module(module), name)
        if not inspect.isclass(found) or not found.__module__.startswith("hookline"):
            continue
        for member, value in vars(found).items():
            if not member.startswith("_") and inspect.isfunction(value):
                assert inspect.getdoc(getattr(found, member)), f"{path}.{member}"


def test_the_reference_describes_every_attribute_of_a_runner(tmp_path: Path):
    runner = Runner(torch.nn.Linear(1, 1), max_epochs=1, work_dir=tmp_path)
    assert public(vars(runner)) - described(Runner) == set()
    assert described(Runner) - public(vars(runner)) <= set(inspect.signature(Runner).parameters)


def test_the_reference_describes_every_attribute_of_a_hook():
    in_table = set(re.findall(r"^\| `(\w+)` \| `", PAGE, re.MULTILINE))
    in_words = set(re.findall(r"`(\w+)`", PAGE.partition("MMEngine's names of")[0]))
    methods = {name for name in public(dir(BaseHook)) if inspect.getdoc(getattr(BaseHook, name))}
    for name in public(dir(BaseHook)) - described(BaseHook) - in_table - in_words:
        assert name in methods, name


def test_every_parameter_of_a_documented_function_is_described():
    for path in ("Runner", "drive", "make_loader"):
        found = getattr(hookline, path)
        parameters = set(inspect.signature(found).parameters)
        assert parameters - described(found) == set(), path


def test_the_reference_has_the_names_that_the_documents_import():
    missing = set()
    for page in [*READMES, *DOCS.rglob("*.md")]:
        for language, text in BLOCK.findall(read(page)):
            if language in ("python", "py"):
                missing |= undocumented_imports(text)
    assert missing == set()


def undocumented_imports(code: str) -> set[str]:
    found = set()
    for module, names in re.findall(
        r"^from (hookline[\w.]*) import ([\w, ]+)$", code, re.MULTILINE
    ):
        if module.startswith(WITH_THEIR_OWN_PAGE):
            continue
        for name in re.split(r",\s*", names):
            if name not in documented() and f"{module}.{name}" not in DIRECTIVES:
                found.add(f"{module}.{name}")
    return found
