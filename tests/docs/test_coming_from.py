"""What the tables for those who come from elsewhere say of Hookline is there: hooks, their parameters, and arguments of the runner."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hookline import Runner
from hookline.config import validate
from hookline.engine import HOOKS, BaseRunner
from hookline.signature import parameters

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    "coming-from.md": "# Coming from",
    "from-mmengine.md": "## To Hookline's own Runner",
    "from-mmcv.md": "## To Hookline's own Runner",
}


def ours(page: str) -> list[str]:
    """The pieces of code in the right columns of a page's tables."""
    text = (DOCS / page).read_text(encoding="utf-8").partition(PAGES[page])[2]
    if PAGES[page].startswith("## "):
        text = text.partition("\n## ")[0]
    rows = re.findall(r"^\| .*? \| (.*) \|$", text, re.MULTILINE)
    return [code.replace("…", "1").replace("...", "") for row in rows for code in re.findall(r"`([^`]+)`", row)]


def calls(page: str) -> list[tuple[str, dict[str, Any]]]:
    """Calls in these pieces: the name and the keywords of each."""
    found = []
    for code in ours(page):
        for text in re.findall(r"^\w+\(.*?\)$", code.partition(".train()")[0]):
            call = ast.parse(re.sub(r"\(,\s*", "(", text), mode="eval").body
            assert isinstance(call, ast.Call)
            found.append((ast.unparse(call.func), {str(keyword.arg): keyword.value for keyword in call.keywords}))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_hooks_of_the_right_column_take_what_they_are_given(page: str) -> None:
    hooks = [(name, given) for name, given in calls(page) if name.endswith("Hook")]
    assert len(hooks) > 5
    for name, given in hooks:
        assert set(given) <= set(parameters(HOOKS.signature_of(HOOKS.get(name))).known), name


@pytest.mark.parametrize("page", PAGES)
def test_the_runner_takes_what_the_right_column_gives_it(page: str) -> None:
    known = {*inspect.signature(Runner).parameters, *inspect.signature(BaseRunner).parameters}
    for name, given in calls(page):
        if name == "Runner":
            assert set(given) <= known


@pytest.mark.parametrize("page", PAGES)
def test_parts_of_configs_in_the_right_column_are_right(page: str) -> None:
    for code in ours(page):
        if re.match(r"\w+: ", code):
            config = {"model": "mlp", "dataset": "digits", "training": {"epochs": 1}, **yaml.safe_load(code)}
            assert [str(problem) for problem in validate(config)] == [], code
