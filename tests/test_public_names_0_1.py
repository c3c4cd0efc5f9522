"""Public names, parameters and attributes of version 0.1 still work, or warn that they are deprecated.

`public_names_0_1.json` was generated from the release. It leaves out attributes that only the
engine used: `evaluation_step`, `improved`, `in_epoch`, `on_device` and `saver` of a runner.
"""

from __future__ import annotations

import importlib
import inspect
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from hookline import HOOKS, BaseHook, Runner
from hookline.deprecation import RUNNER_ATTRIBUTES
from tests.checks import all_failures
from tests.helpers import make_runner

RELEASE: dict[str, Any] = json.loads(
    Path(__file__).with_name("public_names_0_1.json").read_text(encoding="utf-8")
)


def resolve(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("module", RELEASE["names"])
def test_a_public_name_can_be_imported(module):
    with all_failures() as check:
        for name in RELEASE["names"][module]:
            with check(name):
                assert resolve(f"{module}.{name}") is not None


def test_a_parameter_is_still_accepted():
    with all_failures() as check:
        for path, names in RELEASE["parameters"].items():
            known = inspect.signature(resolve(path)).parameters
            with check(path):
                assert set(names) <= set(known)


def test_a_runner_has_its_attributes_and_warns_about_renamed_ones(tmp_path):
    runner = Runner(nn.Linear(1, 1), work_dir=tmp_path)
    with all_failures() as check:
        for name in RELEASE["attributes"]["runner"]:
            with check(name), warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert hasattr(runner, name)
                kinds = [warning.category for warning in caught]
                expected = [DeprecationWarning] if name in RUNNER_ATTRIBUTES else []
                assert kinds == expected


@pytest.mark.parametrize("kind", ["hook", "registry", "events"])
def test_other_objects_have_their_attributes(kind, tmp_path):
    owners = {"hook": BaseHook(), "registry": HOOKS, "events": make_runner(tmp_path).events}
    with all_failures() as check:
        for name in RELEASE["attributes"][kind]:
            with check(name):
                getattr(owners[kind], name)


def test_a_renamed_method_of_a_hook_warns_and_works():
    class Quiet(BaseHook):
        def after_epoch(self, runner):
            raise AssertionError("this site is disabled")

    hook = Quiet()
    with pytest.warns(DeprecationWarning, match="disable_sites"):
        hook.leave_alone("after_epoch")
    assert hook.site_method("after_epoch") is None
