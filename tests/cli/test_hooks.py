from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from hookline.cli.main import main
from hookline.hooks import HOOKS
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
    name = f"own_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    return name


def test_all_hooks_are_listed_in_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == HOOKS.names()
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", HOOKS.names())
def test_every_hook_is_described_with_an_example_that_builds_unless_a_value_must_be_given(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hooks", name]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{name}\n\n")
    assert ("\nsites\n  none" in text) == (name in OF_FUNCTIONS)
    (example,) = yaml.safe_load(text.partition("\nexample\n")[2])["hooks"]
    assert HOOKS.get(example["type"]) is HOOKS.get(name)
    if "???" not in example.values() and name not in MINIMAL and name not in OF_FUNCTIONS:
        assert type(HOOKS.build(example)) is HOOKS.get(name)


def test_a_description_has_parameters_sites_priority_and_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", "CheckpointHook"]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    assert ["interval", "int", "=", "1"] in rows
    assert ["besides:", "name,", "priority,", "frequency"] in rows
    assert ["after_train_epoch"] in rows
    assert ["BELOW_NORMAL", "60"] in rows
    assert ["kept"] in rows


@pytest.mark.parametrize("name", ["checkpoint", "checkpointhook", "CHECKPOINT"])
def test_a_hook_is_found_by_its_short_form_and_in_any_case(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", name]) == 0
    assert capsys.readouterr().out.startswith("CheckpointHook\n")


def test_a_hook_of_the_users_own_is_described_by_its_path(own: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", f"{own}.Sender"]) == 0
    text = capsys.readouterr().out
    rows = [line.split() for line in text.splitlines()]
    assert ["url", "str", "required"] in rows
    assert ["names", "list[str]", "=", '["a"]'] in rows
    assert ["after_epoch"] in rows
    assert ["sent"] in rows
    assert yaml.safe_load(text.partition("\nexample\n")[2])["hooks"] == [{"type": f"{own}.Sender", "url": "???", "names": ["a"]}]


def test_a_plain_class_is_described_too(own: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", f"{own}.Plain"]) == 0
    text = capsys.readouterr().out
    assert "besides: any, name" in text
    assert "after_deal" in text
    assert "what its own state_dict() gives" in text


@pytest.mark.parametrize(("name", "hint"), [("ChekpointHook", "CheckpointHook"), ("chekpoint", "CheckpointHook")])
def test_an_unknown_hook_is_a_mistake_with_the_nearest_one(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", name]) == 2
    assert capsys.readouterr().err == f"unknown hook {name!r}; did you mean {hint!r}?\n"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("CSVHook", "hooks that speak of 'csv': PeriodicWriterHook\n"),
        ("ClipHook", "hooks that speak of 'clip': AmpOptimizerHook (grad_clip), "),
        ("LRWarmupHook", "hooks that speak of 'warmup': CosineAnnealingLrUpdaterHook (warmup), "),
        ("early", "hooks that speak of 'early': EarlyStoppingHook"),
        ("ZzzHook", "`hookline hooks` lists them all\n"),
    ],
)
def test_a_name_close_to_none_is_looked_for_in_what_hooks_say(name: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", name]) == 2
    assert capsys.readouterr().err.startswith(f"unknown hook {name!r}; {hint}")


def test_a_path_that_leads_nowhere_is_a_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["hooks", "no_such_module.Hook"]) == 2
    assert "no module 'no_such_module'" in capsys.readouterr().err
