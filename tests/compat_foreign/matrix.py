"""The matrix of foreign callbacks in docs/foreign-callbacks.md: rows are claimed by tests, and only those that pass are written."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import NamedTuple

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "foreign-callbacks.md"
BEGIN, END = "<!-- matrix: made by `make test-compat` -->\n", "<!-- end of the matrix -->"

WORKS, DIFFERS, CANNOT, UNTRIED = "works", "differs", "cannot", "not tried"
FRAMEWORKS = {
    "Lightning": ("lightning",),
    "Hugging Face transformers": ("transformers", "accelerate"),
    "Keras (torch backend)": ("keras",),
    "Composer: callbacks": ("mosaicml",),
    "Composer: algorithms": ("mosaicml",),
    "Third parties": ("optuna", "optuna-integration", "codecarbon", "dvclive", "tqdm"),
}


class Row(NamedTuple):
    framework: str
    callback: str
    verdict: str
    how: str


def shows(framework: str, callback: str, how: str, verdict: str = WORKS) -> pytest.MarkDecorator:
    """Mark the test that shows a claim about a callback."""
    return pytest.mark.shows(Row(framework, callback, verdict, how))


def table(rows: list[Row]) -> str:
    """The matrix as Markdown."""
    parts = []
    for framework, packages in FRAMEWORKS.items():
        versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
        here = sorted({row for row in rows if row.framework == framework})
        lines = [f"| {row.callback} | {row.verdict} | {row.how} |" for row in here]
        counted = sum(row.verdict == WORKS for row in here)
        heading = f"### {framework} ({versions}): {counted} of {len(here)} work unchanged"
        parts.append("\n".join([heading, "", "| | | |", "| --- | --- | --- |", *lines, ""]))
    return "\n".join(parts)


def written() -> str:
    """The matrix as the page has it."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)]


def write(content: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(text.replace(BEGIN + written() + END, BEGIN + content + END), encoding="utf-8")
