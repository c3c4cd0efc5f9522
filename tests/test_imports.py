from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from hookline.config import load_config, validate
from hookline.errors import Problem
from hookline.imports import (
    BUILDING_LIBRARIES,
    CALLED_LIBRARIES,
    check_origin,
    import_by_path,
    suggest_module,
)
from tests.problems import fields, raises_problem

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


def test_without_a_similar_module_the_classes_of_the_module_are_listed() -> None:
    suggestion = problem(hooks=["yaml.error.MyHook"]).suggestion
    assert suggestion.nearest is None
    assert "YAMLError" in suggestion.known


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


@pytest.mark.parametrize("name", ["transformers", "peft.tuners", "datasets"])
def test_a_missing_package_of_an_extra_is_suggested_with_it(name):
    assert suggest_module(name).advice == "pip install 'hookline[finetune]'"


@pytest.mark.parametrize(
    "path",
    [
        "antigravity.anything",
        "idlelib.idle.anything",
        "webbrowser.open",
        "json.dumps",
        "torch.distributed.run.main",
        "torch.utils.cpp_extension.load",
        "setuptools.setup",
        "pip.main",
    ],
)
def test_modules_of_python_and_those_that_start_programs_are_refused(path):
    with raises_problem():
        import_by_path(path, "function", callable)
    assert not {"antigravity", "idlelib.idle"} & sys.modules.keys()


def test_a_partial_object_comes_from_the_module_of_its_function(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    (folder / "partial_parts.py").write_text(
        "import functools, os\n"
        "def pad(samples, value): return samples\n"
        "padded = functools.partial(functools.partial(pad), value=0)\n"
        "shell = functools.partial(os.system, 'true')\n"
    )
    assert callable(import_by_path("partial_parts.padded", "function", callable))
    with raises_problem():
        import_by_path("partial_parts.shell", "function", callable)


@pytest.mark.parametrize(
    "path",
    [
        "torch.utils.collect_env.run",
        "torch.sigmoid",
        "psutil.Popen",
        "sympy.sympify",
        "yaml.unsafe_load",
        "numpy.f2py.run_main",
        "hookline.cli.main.main",
        "hookline.files.replace_file",
    ],
)
def test_functions_of_other_packages_are_refused(path, monkeypatch):
    found = import_by_path(path, "function", callable)
    for libraries in (BUILDING_LIBRARIES, CALLED_LIBRARIES):
        with raises_problem():
            check_origin(found, path, libraries)


def test_functions_of_listed_libraries_and_of_the_user_may_be_called(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    (folder / "own_functions.py").write_text(
        "import functools\n"
        "from psutil import Popen\n"
        "from torch.utils.data import default_collate\n"
        "def pad(samples): return samples\n"
        "again = functools.wraps(pad)(lambda samples: pad(samples))\n"
        "class Pad:\n    def __call__(self, samples): return samples\n"
        "prepared = Pad()\n"
        "start = functools.partial(Popen, ['true'])\n"
    )
    for name in ("pad", "again", "prepared", "default_collate"):
        found = import_by_path(f"own_functions.{name}", "function", callable)
        check_origin(found, f"own_functions.{name}", CALLED_LIBRARIES)
    for name in ("Popen", "start"):
        found = import_by_path(f"own_functions.{name}", "function", callable)
        with raises_problem():
            check_origin(found, f"own_functions.{name}", CALLED_LIBRARIES)


def test_a_module_without_a_file_belongs_to_the_package_around_it(monkeypatch):
    def run() -> None: ...

    run.__module__ = "psutil.no_file"
    monkeypatch.setitem(sys.modules, "psutil.no_file", types.ModuleType("psutil.no_file"))
    with raises_problem():
        check_origin(run, "psutil.no_file.run", ())
