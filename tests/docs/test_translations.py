"""The Chinese pages have the same code, apart from words, and the same sections as the English ones."""

from __future__ import annotations

import ast
import re
from typing import Any

import yaml

from tests.checks import all_failures
from tests.docs.pages import BLOCK, DOCS, READMES, name_of, read

PAIRS = [(READMES[0], READMES[1])]
PAIRS += [(DOCS / page.name, page) for page in sorted((DOCS / "zh").glob("*.md"))]


class WithoutWords(ast.NodeTransformer):
    """Empties texts, which are in the language of the page. Names, such as keys, are kept."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        is_text = isinstance(node.value, str) and (" " in node.value or not node.value.isascii())
        return ast.Constant("") if is_text else node


def meaning(language: str, text: str) -> Any:
    """Return a block of code in a form that two languages share."""
    if language == "python":
        return ast.dump(WithoutWords().visit(ast.parse(text)))
    if language == "yaml":
        return yaml.safe_load(text)
    return [line.partition(" #")[0].rstrip() for line in text.splitlines()]


def test_code_is_the_same_in_both_languages() -> None:
    with all_failures() as check:
        for english, chinese in PAIRS:
            with check(name_of(chinese)):
                ours, theirs = BLOCK.findall(read(english)), BLOCK.findall(read(chinese))
                assert [language for language, _ in theirs] == [language for language, _ in ours]
                for (language, text), (_, other) in zip(ours, theirs, strict=True):
                    assert meaning(language, text) == meaning(language, other), other


def test_there_are_as_many_sections_in_both_languages() -> None:
    with all_failures() as check:
        for english, chinese in PAIRS:
            with check(name_of(chinese)):
                counts = []
                for page in (english, chinese):
                    text = BLOCK.sub("", read(page))
                    counts.append(len(re.findall("^## ", text, re.MULTILINE)))
                assert counts[0] == counts[1]


def test_words_are_ignored_and_values_are_not() -> None:
    assert meaning("python", 'x = 1  # one\n"""A word."""') == meaning(
        "python", 'x = 1  # 一\n"""词。"""'
    )
    assert meaning("python", "x = 1") != meaning("python", "x = 2")
    assert meaning("python", "x['a']") != meaning("python", "x['b']")
    assert meaning("python", "log('a b')") == meaning("python", "log('一')")
