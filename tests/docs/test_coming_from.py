"""The tables for users of other frameworks name existing hooks, parameters and arguments of the runner."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import yaml

from hookline import Runner
from hookline.config import validate
from hookline.engine import HOOKS, BaseRunner
from hookline.signature import parameters
from tests.checks import all_failures
from tests.docs.pages import DOCS, section

# The section of each page with the tables.
PAGES = {
    "coming-from.md": "# Coming from",
    "from-mmengine.md": "## To Hookline's own Runner",
    "from-mmcv.md": "## To Hookline's own Runner",
}


def snippets(page: str) -> list[str]:
    """Return the pieces of code in the right columns of a page's tables."""
    pieces = []
    for row in re.findall(r"^\| .*? \| (.*) \|$", section(DOCS / page, PAGES[page]), re.MULTILINE):
        for code in re.findall(r"`([^`]+)`", row):
            pieces.append(code.replace("…", "1").replace("...", ""))
    return pieces


def calls(page: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the calls in these pieces: the name and the keywords of each."""
    found = []
    for code in snippets(page):
        for text in re.findall(r"^\w+\(.*?\)$", code.partition(".train()")[0]):
            call = ast.parse(re.sub(r"\(,\s*", "(", text), mode="eval").body
            assert isinstance(call, ast.Call)
            keywords = {str(keyword.arg): keyword.value for keyword in call.keywords}
            found.append((ast.unparse(call.func), keywords))
    return found


def test_hooks_of_the_right_column_have_the_given_parameters() -> None:
    with all_failures() as check:
        for page in PAGES:
            hooks = [(name, given) for name, given in calls(page) if name.endswith("Hook")]
            with check(page):
                assert len(hooks) > 5
            for name, given in hooks:
                with check(f"{page}: {name}"):
                    known = parameters(HOOKS.signature_of(HOOKS.get(name))).known
                    assert set(given) <= set(known)


def test_the_runner_has_the_parameters_of_the_right_column() -> None:
    known = {*inspect.signature(Runner).parameters, *inspect.signature(BaseRunner).parameters}
    with all_failures() as check:
        for page in PAGES:
            for name, given in calls(page):
                if name == "Runner":
                    with check(page):
                        assert set(given) <= known


def test_parts_of_configs_in_the_right_column_are_valid() -> None:
    minimal = {"model": "mlp", "dataset": "digits", "training": {"epochs": 1}}
    with all_failures() as check:
        for page in PAGES:
            for code in snippets(page):
                if re.match(r"\w+: ", code):
                    with check(f"{page}: {code}"):
                        config = {**minimal, **yaml.safe_load(code)}
                        assert [str(problem) for problem in validate(config)] == []
