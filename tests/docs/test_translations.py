"""The Chinese pages say what the English ones do: the same code, up to words, and the same sections."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAIRS = {
    "README.zh.md": (ROOT / "README.md", ROOT / "README.zh.md"),
    **{page.name: (ROOT / "docs" / page.name, page) for page in sorted((ROOT / "docs" / "zh").glob("*.md"))},
}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class WithoutWords(ast.NodeTransformer):
    """Strings are for readers, and so in their language."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node


def meaning(language: str, text: str) -> Any:
    if language == "python":
        return ast.dump(WithoutWords().visit(ast.parse(text)))
    if language == "yaml":
        return yaml.safe_load(text)
    return [line.partition(" #")[0].rstrip() for line in text.splitlines()]


@pytest.mark.parametrize("name", PAIRS)
def test_code_is_the_same_in_both_languages(name: str) -> None:
    english, chinese = (BLOCK.findall(page.read_text(encoding="utf-8")) for page in PAIRS[name])
    assert [language for language, _ in chinese] == [language for language, _ in english]
    for (language, ours), (_, theirs) in zip(english, chinese, strict=True):
        assert meaning(language, ours) == meaning(language, theirs), theirs


@pytest.mark.parametrize("name", PAIRS)
def test_there_are_as_many_sections_in_both_languages(name: str) -> None:
    english, chinese = (BLOCK.sub("", page.read_text(encoding="utf-8")) for page in PAIRS[name])
    assert len(re.findall("^## ", chinese, re.MULTILINE)) == len(re.findall("^## ", english, re.MULTILINE))


def test_words_do_not_count_but_values_do() -> None:
    assert meaning("python", 'x = 1  # one\n"""a"""') == meaning("python", 'x = 1  # eins\n"""b"""')
    assert meaning("python", "x = 1") != meaning("python", "x = 2")
