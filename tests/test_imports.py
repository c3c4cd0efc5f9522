from __future__ import annotations

import re
import wave
from pathlib import Path

import pytest

from hookline.config import load_config, validate
from hookline.errors import Problem
from tests.problems import fields

PARTS = {"model": "cnn", "dataset": "digits", "training": {"epochs": 1}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a module of the user's own, found last as the command has it."""
    name = f"waves_{re.sub(r'[^a-z0-9]', '', tmp_path.name)}"
    (tmp_path / f"{name}.py").write_text(
        "from hookline import BaseHook\n\nclass MyHook(BaseHook): ...\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problem(**parts: object) -> Problem:
    (found,) = validate(load_config({**PARTS, **parts}))
    return found


def test_a_local_module_with_a_similar_name_is_suggested(folder: Path) -> None:
    (folder / "waves.py").touch()
    found = problem(hooks=["wave.MyHook"])
    assert fields(found, "path", "parameter", "nearest") == {
        "path": ("hooks", 0, "type"),
        "parameter": "type",
        "nearest": "waves.MyHook",
    }
    assert wave.__file__ in found.message


def test_without_a_similar_module_the_classes_of_the_module_are_listed() -> None:
    suggestion = problem(hooks=["wave.MyHook"]).suggestion
    assert suggestion.nearest is None
    assert "Error" in suggestion.known


def test_a_local_module_that_another_one_hides_is_named(folder: Path) -> None:
    (folder / "wave.py").touch()
    assert "wave.py" in problem(hooks=["wave.MyHook"]).suggestion.advice


def test_a_missing_module_gets_a_suggestion(folder: Path) -> None:
    (folder / "parts").mkdir()
    (folder / "parts" / "__init__.py").touch()
    assert problem(model="partz.nets.Net").suggestion.nearest == "parts.nets.Net"
    found = problem(custom_imports=["partz.nets"])
    assert (found.path, found.suggestion.nearest) == (("custom_imports", 0), "parts.nets")


def test_for_a_misspelled_class_one_of_the_same_module_is_suggested(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(folder)
    (module,) = folder.glob("waves_*.py")
    assert problem(hooks=[f"{module.stem}.MyHok"]).suggestion.nearest == "MyHook"
