from __future__ import annotations

import re
import wave
from pathlib import Path

import pytest

from hookline.config import load_config, validate

PARTS = {"model": "cnn", "dataset": "digits", "training": {"epochs": 1}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a module of the user's own, found last as the command has it."""
    name = f"waves_{re.sub(r'[^a-z0-9]', '', tmp_path.name)}"
    (tmp_path / f"{name}.py").write_text("from hookline import BaseHook\n\nclass MyHook(BaseHook): ...\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(**parts: object) -> str:
    (problem,) = validate(load_config({**PARTS, **parts}))
    return problem.message


def test_a_class_is_missed_in_a_file_that_is_named_and_the_users_module_of_nearly_that_name_is_suggested(folder: Path) -> None:
    (folder / "waves.py").touch()
    assert told(hooks=["wave.MyHook"]) == f"module 'wave' ({wave.__file__}) has no 'MyHook'; did you mean 'waves.MyHook'?"


def test_without_such_a_module_it_is_told_what_is_there() -> None:
    assert told(hooks=["wave.MyHook"]).startswith(f"module 'wave' ({wave.__file__}) has no 'MyHook'; known: Error, ")


def test_a_module_of_the_user_that_another_one_hides_is_told(folder: Path) -> None:
    (folder / "wave.py").touch()
    assert told(hooks=["wave.MyHook"]).endswith(" has no 'MyHook'; it hides your wave.py: give that another name")


def test_a_module_that_is_not_there_is_suggested_too(folder: Path) -> None:
    (folder / "parts").mkdir()
    (folder / "parts" / "__init__.py").touch()
    assert told(model="partz.nets.Net") == "unknown model 'partz.nets.Net': there is no module 'partz.nets'; did you mean 'parts.nets.Net'?"
    assert told(custom_imports=["partz.nets"]).endswith("No module named 'partz'; did you mean 'parts.nets'?")


def test_a_class_that_is_only_misspelt_stays_in_its_module(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(folder)
    (module,) = folder.glob("waves_*.py")
    assert told(hooks=[f"{module.stem}.MyHok"]) == f"module {module.stem!r} ({module}) has no 'MyHok'; did you mean 'MyHook'?"
