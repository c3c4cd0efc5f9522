"""The parts of a docstring: its summary, and the meaning of each argument."""

from __future__ import annotations

import inspect
import re

ARGUMENT = re.compile(r"(\w+)(?: \([^)]*\))?: (.*)")
SECTION = re.compile(r"[A-Z][A-Za-z ]*:$")
INDENT = 4  # of the entries of a section


def summary_of(target: object) -> str:
    """Return the first paragraph of a docstring, on one line."""
    paragraph = (inspect.getdoc(target) or "").partition("\n\n")[0]
    return " ".join(paragraph.split())


def argument_docs(target: object) -> dict[str, str]:
    """Return the meaning of each argument in the section `Args:`, on one line."""
    docs: dict[str, str] = {}
    name = ""
    is_inside = False
    for line in (inspect.getdoc(target) or "").splitlines():
        if SECTION.match(line):
            is_inside = line == "Args:"
        if not is_inside or not line.strip() or SECTION.match(line):
            continue
        indent = len(line) - len(line.lstrip())
        match = ARGUMENT.match(line.strip()) if indent == INDENT else None
        if match is not None:
            name = match[1]
            docs[name] = match[2]
        elif name and indent > INDENT:
            docs[name] += f" {line.strip()}"
    return docs


def inherited_argument_docs(cls: type) -> dict[str, str]:
    """Return the meanings of arguments from the docstrings of a class and of its bases."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if "__doc__" in vars(base):
            docs.update(argument_docs(base))
    return docs
