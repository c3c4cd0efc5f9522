from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hookline.cli import docs
from hookline.cli.docs import PAGES
from hookline.cli.docs_hooks import groups, hook_classes, hook_page, index_page, meaning_of, page_name
from hookline.cli.docs_words import BY_ITSELF, EXAMPLES, GROUPS, IN_PYTHON, MEANINGS, MORE_STATE, OTHERS, PICTURES, STATE
from hookline.cli.hooks import sites_of, state_of
from hookline.config import load_config
from hookline.engine import HOOKS, BaseHook
from hookline.engine.registration import HookHost
from hookline.signature import parameters
from tests.cli.helpers import ROOT

CLASSES = hook_classes()
OF_A_CONFIG = [cls for cls in CLASSES if cls.__name__ not in IN_PYTHON]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def written(cls: type[BaseHook]) -> str:
    return (ROOT / "docs" / "hooks" / page_name(cls)).read_text(encoding="utf-8")


def block(cls: type[BaseHook], language: str) -> str:
    (found,) = [text for each, text in BLOCK.findall(written(cls)) if each == language]
    return found


def built_from_page(cls: type[BaseHook]) -> BaseHook:
    (config,) = yaml.safe_load(block(cls, "yaml"))["hooks"]
    return HookHost().register_hook(config)


def test_every_hook_of_ours_has_a_page_and_there_are_no_others() -> None:
    ours = {cls for name, cls in HOOKS.items() if cls.__module__.startswith("hookline.hooks")}
    assert set(CLASSES) == ours
    assert {path.name for path in (ROOT / "docs" / "hooks").glob("*.md")} == {page_name(cls) for cls in ours}
    assert len({page_name(cls) for cls in ours}) == len(ours)


@pytest.mark.parametrize(
    ("name", "page"), [("CheckpointHook", "checkpoint_hook.md"), ("MLflowHook", "mlflow_hook.md"), ("CAMHook", "cam_hook.md")]
)
def test_a_page_is_called_like_the_hook(name: str, page: str) -> None:
    assert page_name(HOOKS.get(name)) == page


@pytest.mark.parametrize("cls", OF_A_CONFIG, ids=lambda cls: cls.__name__)
def test_the_hook_of_a_pages_config_and_that_of_its_python_are_the_same(cls: type[BaseHook]) -> None:
    namespace: dict[str, Any] = {}
    exec(block(cls, "python"), namespace)  # noqa: S102  # our own page
    made, built = namespace["hook"], built_from_page(cls)
    assert type(made) is type(built) is cls
    for name in parameters(HOOKS.signature_of(cls)).known:
        if name != "name" and not callable(getattr(made, name, print)):
            assert str(getattr(made, name)) == str(getattr(built, name)), name


@pytest.mark.parametrize("cls", OF_A_CONFIG, ids=lambda cls: cls.__name__)
def test_a_pages_example_is_part_of_a_config_whose_value_the_command_line_changes(cls: type[BaseHook], tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(block(cls, "yaml"), encoding="utf-8")
    for override in re.findall(r"`(hooks\.\S+=\S+)`", written(cls)):
        key = override.partition("=")[0].rpartition(".")[2]
        before, after = (load_config(config, overrides)["hooks"] for overrides in ([], [override.replace(f"{key}=", f"{key}=7")]))
        assert {**before[0], key: after[0][key]} == after[0] != before[0]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_page_tells_all_parameters_with_their_meaning_all_sites_and_all_state(cls: type[BaseHook]) -> None:
    text = written(cls)
    for name in parameters(HOOKS.signature_of(cls)).known:
        meaning = re.search(rf"^\| `{name}` \| `.+` \| .+ \| (.{{8,}}) \|$", text, re.MULTILINE)
        assert meaning, name
        assert not meaning[1].startswith("Base of"), f"{name}: that is said of a class"
    for site in sites_of(cls):
        assert f"(../sites.md#{site})" in text
    for field in state_of(cls):
        assert f"| `{field}` |" in text or MORE_STATE[cls.__name__].lower() in text.lower()
    assert cls.ranks != "main" or "first process only" in text


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_index_names_a_hook_once_with_its_other_names(cls: type[BaseHook]) -> None:
    index = index_page()
    assert len(re.findall(rf"^\| (?:\*\*)?\[{cls.__name__}\]\(hooks/{page_name(cls)}\)", index, re.MULTILINE)) == 1
    assert all(f"`{name}`" in index for name, each in HOOKS.items() if each is cls and name != cls.__name__)


def test_our_tables_name_nothing_that_is_not_there() -> None:
    names = {cls.__name__ for cls in CLASSES}
    bases = names | {base.__name__ for cls in CLASSES for base in cls.__mro__}
    assert [name for title in GROUPS.values() for name in title if name not in names] == []
    assert set(BY_ITSELF) | set(EXAMPLES) | set(PICTURES) | set(IN_PYTHON) | set(MORE_STATE) <= names
    assert {key.partition(".")[0] for key in MEANINGS if "." in key} <= bases
    assert set(STATE) == {field for cls in CLASSES for field in state_of(cls) if field.isidentifier()}
    assert OTHERS not in groups(), "give the new hook a place in GROUPS"


def test_no_words_of_ours_stand_for_a_parameter_that_is_no_more() -> None:
    known = {(base.__name__, name) for cls in CLASSES for base in cls.__mro__ for name in parameters(HOOKS.signature_of(cls)).known}
    unused = [key for key in MEANINGS if not any(key in (name, f"{owner}.{name}") for owner, name in known)]
    assert unused == []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_hook_that_draws_shows_what(cls: type[BaseHook]) -> None:
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", written(cls))
    draws = cls.__module__.startswith("hookline.hooks") and any("visual" in base.__module__ for base in cls.__mro__)
    assert bool(pictures) >= draws
    assert all((ROOT / "docs" / "hooks" / picture).stat().st_size > 300 for picture in pictures)


def test_a_parameter_is_told_by_the_clause_that_begins_with_it_or_else_the_first_that_names_it() -> None:
    class Own(BaseHook):
        """Wait for `first`; then go on.

        With `second` (`a; b`) it is loud. `first` is a number; nobody counts it.
        """

    assert meaning_of(Own, "first") == "`first` is a number."
    assert meaning_of(Own, "second") == "With `second` (`a; b`) it is loud."
    assert meaning_of(Own, "third") == ""


def test_a_hook_that_no_group_names_is_listed_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(GROUPS, "Functions")
    assert [cls.__name__ for cls in groups()[OTHERS]] == ["LambdaHook"]
    assert f"## {OTHERS}" in index_page()


def test_a_page_links_to_the_hooks_and_pages_that_it_speaks_of() -> None:
    text = hook_page(HOOKS.get("DetVisualizationHook"))
    assert "otherwise like [VisualizationHook](visualization_hook.md)." in text
    assert re.search(r"## See also\n\n- \[.*\]\(\.\./pictures\.md", text)


def test_the_page_of_a_hook_that_is_no_more_is_removed(tmp_path: Path) -> None:
    old = tmp_path / "docs" / "hooks" / "old_hook.md"
    old.parent.mkdir(parents=True)
    old.write_text("# OldHook\n")
    docs.main(tmp_path)
    assert not old.exists()
    assert {path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")} == set(PAGES)


def test_the_navigation_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {page for page in pages if not re.search(rf"[ :-] {re.escape(page)}$", text, re.MULTILINE)} == set()
