"""`hookline hooks`: the list, the description of a hook, and suggestions."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hookline.cli.main import main
from hookline.hooks import HOOKS
from tests.checks import all_failures
from tests.cli.helpers import error_of
from tests.contracts.minimal import MINIMAL, OF_FUNCTIONS

OWN = """
from dataclasses import dataclass, field
from hookline import BaseHook, state

@dataclass
class Sender(BaseHook):
    url: str
    names: list[str] = field(default_factory=lambda: ["a"])
    sent: int = state(0)

    def after_epoch(self, epoch): ...

class Plain(BaseHook):
    extra_sites = ("after_deal",)

    def __init__(self, size=3, **more): ...
    def state_dict(self): return {}
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module with hooks of a user."""
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_every_hook_is_listed_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == HOOKS.names()
    assert all(len(line.split()) > 3 for line in lines)


def test_every_hook_is_described_with_an_example_that_builds_unless_a_value_must_be_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with all_failures() as check:
        for name in HOOKS.names():
            with check(name):
                assert main(["hooks", name]) == 0
                check_description(name, capsys.readouterr().out)


def check_description(name: str, text: str) -> None:
    assert text.startswith(f"{name}\n\n")
    assert ("\nsites\n  none" in text) == (name in OF_FUNCTIONS)
    (example,) = yaml.safe_load(text.partition("\nexample\n")[2])["hooks"]
    assert HOOKS.get(example["type"]) is HOOKS.get(name)
    if "???" not in example.values() and name not in MINIMAL and name not in OF_FUNCTIONS:
        assert type(HOOKS.build(example)) is HOOKS.get(name)


def test_a_description_has_parameters_sites_priority_and_state(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["hooks", "CheckpointHook"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["interval", "int", "=", "1"] in rows
    assert ["also:", "name,", "priority,", "frequency"] in rows
    assert ["after_train_epoch"] in rows
    assert ["BELOW_NORMAL", "60"] in rows
    assert ["kept"] in rows


@pytest.mark.parametrize("name", ["checkpoint", "checkpointhook", "CHECKPOINT"])
def test_a_hook_is_found_by_its_short_form_and_in_any_case(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hooks", name]) == 0
    assert capsys.readouterr().out.startswith("CheckpointHook\n")


def test_a_hook_of_the_user_is_described_by_its_path(
    own: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hooks", f"{own}.Sender"]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    assert ["url", "str", "required"] in rows
    assert ["names", "list[str]", "=", '["a"]'] in rows
    assert ["after_epoch"] in rows
    assert ["sent"] in rows
    assert yaml.safe_load(text.partition("\nexample\n")[2])["hooks"] == [
        {"type": f"{own}.Sender", "url": "???", "names": ["a"]}
    ]


def test_a_plain_class_is_described(own: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", f"{own}.Plain"]) == 0
    text = capsys.readouterr().out
    assert "also: any other, name" in text
    assert "after_deal" in text
    assert "state_dict()" in text


@pytest.mark.parametrize("name", ["ChekpointHook", "chekpoint"])
def test_an_unknown_hook_suggests_the_nearest_one(name: str) -> None:
    assert error_of("hooks", name).suggestion.nearest == "CheckpointHook"
    assert main(["hooks", name]) == 2


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CSVHook", "'csv': PeriodicWriterHook"),
        ("ClipHook", "'clip': AmpOptimizerHook (grad_clip), "),
        ("LRWarmupHook", "'warmup': CosineAnnealingLrUpdaterHook (warmup), "),
        ("early", "'early': EarlyStoppingHook"),
        ("ZzzHook", "`hookline hooks`"),
    ],
)
def test_a_name_without_a_near_one_is_searched_in_descriptions(name: str, expected: str) -> None:
    suggestion = error_of("hooks", name).suggestion
    assert suggestion.nearest is None
    assert expected in suggestion.advice


def test_a_path_to_no_module_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", "no_such_module.Hook"]) == 2
    assert "no_such_module" in capsys.readouterr().err
