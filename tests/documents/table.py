"""The table of requirements: each row says what a document asks for and how it is checked."""

from __future__ import annotations

import importlib
import inspect
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

REQUIREMENTS = "requirements"
GUIDE = "guide"
KINDS = ("class", "function", "parameter", "default", "moment", "file", "formula", "behavior")
MODULES = (
    "structure",
    "sites",
    "checkpoints",
    "logging",
    "trackers",
    "evaluation",
    "early_stopping",
    "averaging",
    "profiling",
    "pictures",
    "configs",
    "guide",
    "guide_hooks",
)


@dataclass(frozen=True)
class Row:
    """One requirement. The check raises, or returns False, if it is not met."""

    section: str
    kind: str
    requirement: str
    check: Callable[[], object]

    def problem(self) -> str:
        """Return why the requirement is not met, or an empty text."""
        try:
            if self.check() is False:
                return "the condition is false"
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
        return ""


class Section:
    """The rows about one section of a document."""

    all: list[Section] = []

    def __init__(self, document: str, title: str) -> None:
        self.document = document
        self.title = title
        self.rows: list[Row] = []
        self.all.append(self)

    def row(self, kind: str, requirement: str) -> Callable[[Callable[[], object]], Any]:
        """Add the decorated function as the check of a row."""

        def add(check: Callable[[], object]) -> Callable[[], object]:
            self.add(kind, requirement, check)
            return check

        return add

    def add(self, kind: str, requirement: str, check: Callable[[], object]) -> None:
        """Add a row."""
        assert kind in KINDS, kind
        assert requirement not in {row.requirement for row in self.rows}, requirement
        self.rows.append(Row(self.title, kind, requirement, check))

    def defaults(self, cls: type, values: Mapping[str, Any]) -> None:
        """Add a row for the default of each parameter of a class."""
        for name, value in values.items():
            text = f"`{name}` of {cls.__name__} is {value!r} by default"
            self.add("default", text, lambda name=name, value=value: has_default(cls, name, value))


def has_default(cls: type, name: str, value: Any) -> None:
    """Check the default in the signature."""
    default = inspect.signature(cls).parameters[name].default
    assert default == value, default
    assert isinstance(default, type(value)), type(default)


def load_sections() -> list[Section]:
    """Return all sections, in the order of the documents."""
    for name in MODULES:
        importlib.import_module(f"tests.documents.rows.{name}")
    return Section.all


def print_table(sections: Iterable[Section], show: Callable[[str], object]) -> int:
    """Check and print all rows and their counts; return the number of failed rows."""
    counts: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    began = time.process_time()
    for section in sections:
        show(f"\n{section.document}: {section.title}")
        for row in section.rows:
            problem = row.problem()
            show(f"  {'FAIL' if problem else 'ok  '}  {row.kind:9}  {row.requirement}")
            if problem:
                show(f"        {problem}")
            counts[section.document] += 1
            counts[row.kind] += 1
            failed[section.document] += bool(problem)
    show("")
    for document in (REQUIREMENTS, GUIDE):
        show(f"{document}: {counts[document] - failed[document]} of {counts[document]} rows hold")
    show(", ".join(f"{kind} {counts[kind]}" for kind in KINDS))
    show(f"{time.process_time() - began:.1f} s of CPU time")
    return failed.total()
