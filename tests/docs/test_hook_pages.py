"""Every hook has a page, made from its class and docstring, with an example that runs."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from hookline.config import validate
from hookline.engine import HOOKS, BaseHook
from hookline.hooks import LrUpdaterHook
from hookline.signature import parameters
from scripts.docs.hook_docs import HookDoc
from scripts.docs.hook_pages import HookPages
from scripts.docs.schedule_curves import draw_curve
from scripts.docs.site import OTHER_HOOKS, ROOT, Site, read_site
from tests.checks import all_failures

SITE = read_site()
PAGES = SITE.hook_pages
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MINIMAL = {"model": "mlp", "dataset": "digits", "training": {"epochs": 1}}


def page_of(hook: HookDoc) -> str:
    return PAGES[f"hooks/{hook.page}"]


def hook_named(name: str) -> HookDoc:
    return HookDoc(HOOKS.get(name))


def test_every_built_in_hook_has_a_page_of_its_own():
    built_in = {cls for _, cls in HOOKS.items() if cls.__module__.startswith("hookline.hooks.")}
    assert {hook.cls for hook in SITE.hooks} == built_in
    assert len(PAGES) == len(built_in)


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("CheckpointHook", "checkpoint_hook.md"),
        ("MLflowHook", "mlflow_hook.md"),
        ("CAMHook", "cam_hook.md"),
    ],
)
def test_a_page_is_named_like_the_hook(name, page):
    assert hook_named(name).page == page


def test_a_docstring_begins_with_one_sentence_on_one_line():
    for hook in SITE.hooks:
        lines = inspect.cleandoc(hook.cls.__doc__).splitlines()
        assert lines[0].endswith("."), hook.name
        assert len(lines) == 1 or lines[1] == "", hook.name


def test_a_docstring_describes_each_parameter_and_each_state_field_and_nothing_else():
    for hook in SITE.hooks:
        described = {name for name in hook.meanings if not name.startswith("*")}
        assert described == {row.name for row in hook.parameters()}, hook.name
        assert set(hook.attributes) == {row.name for row in hook.state_fields()}, hook.name
        for meaning in [*hook.meanings.values(), *hook.attributes.values()]:
            assert re.fullmatch(r"[A-Z`-].*\.", meaning), (hook.name, meaning)


def test_a_page_lists_parameters_sites_and_state():
    for hook in SITE.hooks:
        text = page_of(hook)
        for row in [*hook.parameters(), *hook.state_fields()]:
            assert re.search(rf"^\| `{row.name}` \| .+ \| .+ \|$", text, re.MULTILINE), row
        for site in hook.sites():
            assert f"(../sites.md#{site})" in text, hook.name
        assert ("rank 0 only" in text) == (hook.cls.ranks == "main"), hook.name


def test_the_example_of_a_page_builds_the_hook():
    with all_failures() as check:
        for hook in SITE.hooks:
            with check(hook.name):
                check_example(hook)


def check_example(hook: HookDoc) -> None:
    made = run_python(page_of(hook))["hook"]
    assert type(made) is hook.cls
    config = hook.example_config()
    if config is None:
        return
    assert validate({**MINIMAL, "hooks": [config]}) == []
    built = HOOKS.build(config)
    assert type(built) is hook.cls
    for name in parameters(hook.cls).known:
        if name != "name" and not callable(getattr(made, name, print)):
            assert str(getattr(made, name)) == str(getattr(built, name)), name


def run_python(page: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {}
    for language, code in BLOCK.findall(page):
        if language == "python":
            exec(code, namespace)  # noqa: S102  # our own page
    return namespace


def test_the_index_lists_each_hook_once_with_its_aliases():
    index = SITE.part("hooks")
    for hook in SITE.hooks:
        link = re.escape(f"[{hook.name}](hooks/{hook.page})")
        assert len(re.findall(rf"^\| (?:\*\*)?{link}", index, re.MULTILINE)) == 1, hook.name
        assert all(f"`{name}`" in index for name in hook.aliases), hook.name


def test_the_pages_of_drawing_hooks_and_schedules_show_a_picture():
    groups = SITE.groups()
    schedules = [path.removeprefix("hooks/images/") for path in SITE.curves()]
    drawing = [*groups["Pictures"], *(name.replace(".svg", ".md") for name in schedules)]
    for page in drawing:
        (picture,) = re.findall(r"!\[.*?\]\((.*?)\)", PAGES[f"hooks/{page}"])
        path = Path("hooks", picture)
        made = path.as_posix() in SITE.curves()
        assert made or (ROOT / "docs" / path).resolve().is_file(), page


def test_the_curve_of_a_schedule_is_drawn():
    assert draw_curve(hook_named("CosineAnnealingMomentumUpdaterHook")).count("<path") > 2


def test_a_page_links_to_other_hooks_and_to_task_pages():
    text = page_of(hook_named("Fp16OptimizerHook"))
    assert "[AmpOptimizerHook](amp_optimizer_hook.md) works with any model" in text
    text = page_of(hook_named("DetVisualizationHook"))
    assert re.search(
        r"^- \[.*\]\(\.\./pictures\.md", text.partition("## See also")[2], re.MULTILINE
    )


def test_a_parameter_of_a_base_class_is_described_by_the_nearest_docstring():
    class Base(BaseHook):
        """Wait.

        Args:
            first: From the base.
            second: From the base.
        """

    class Own(Base):
        """Go on.

        Args:
            second: From the class itself.
        """

    assert HookDoc(Own).meanings == {"first": "From the base.", "second": "From the class itself."}
    assert HookDoc(Own).summary == "Go on."


def test_a_state_dict_that_no_docstring_describes_is_an_error():
    class Silent(BaseHook):
        """Keep a secret."""

        def state_dict(self):
            return {"secret": 1}

    with pytest.raises(ValueError):
        HookPages([], ROOT / "docs", []).page(HookDoc(Silent))


def test_a_hook_that_the_navigation_does_not_list_is_added_to_it_and_to_the_index():
    nav = [
        {"Guide": []},
        {"Tasks": []},
        {"Hooks": [{"All hooks": "hooks-reference.md"}, {"Functions": []}]},
    ]
    site = Site(ROOT / "docs", nav, [hook_named("LambdaHook")])
    assert f"## {OTHER_HOOKS}" in site.part("hooks")
    site.complete_nav()
    assert nav[-1]["Hooks"][-1] == {OTHER_HOOKS: [{"LambdaHook": "hooks/lambda_hook.md"}]}


def test_the_navigation_lists_no_hook_that_does_not_exist():
    listed = {page for pages in SITE.groups().values() for page in pages}
    assert listed == {hook.page for hook in SITE.hooks}


@pytest.mark.parametrize(
    "word", ["csv", "warm-up", "warmup", "clipping", "accumulation", "mixed precision", "NaN"]
)
def test_a_word_that_no_hook_is_named_after_leads_to_a_hook(word):
    assert any(word.lower() in line.lower() for line in rows_by_other_words())


def test_a_row_by_other_words_names_parameters_of_its_hook():
    for line in rows_by_other_words():
        hooks = [HOOKS.get(name) for name in re.findall(r"\[(\w+)\]\(hooks/", line)]
        for name in re.findall(r"`(\w+)`", line):
            assert name in parameters(hooks[0]).known, line


def rows_by_other_words() -> list[str]:
    text = (ROOT / "docs" / "hooks-reference.md").read_text(encoding="utf-8")
    table = text.partition("## By other words")[2]
    return [line for line in table.splitlines() if "](hooks/" in line]


def test_every_learning_rate_schedule_has_a_warm_up():
    for hook in SITE.hooks:
        if issubclass(hook.cls, LrUpdaterHook):
            assert "warmup" in hook.meanings
