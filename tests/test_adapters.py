"""Callbacks of other frameworks are recognised by where their class comes from; here by a framework of our own making."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from types import ModuleType

import pytest

from hookline import adapters
from hookline.adapters import ENTRY_POINT_GROUP, adapt
from hookline.engine import HOOKS, BaseHook
from hookline.errors import ConfigError
from tests.helpers import make_runner
from tests.problems import raises_problem


class Wrapped(BaseHook):
    def __init__(self, callback):
        self.callback = callback
        self.calls = 0

    def after_train_iter(self, runner):
        self.calls += 1


@pytest.fixture
def framework(monkeypatch):
    """A package `acme` with a base class, a callback and something else, and its wrapper."""
    package, wrapper = ModuleType("acme"), ModuleType("acme_wrapper")

    class Callback:
        pass

    class Stopper(Callback):
        def __init__(self, patience: int = 3):
            self.patience = patience

    class Other:
        pass

    for cls in (Callback, Stopper, Other):
        cls.__module__ = "acme"
        setattr(package, cls.__name__, cls)
    wrapper.wrap, wrapper.is_callback = Wrapped, lambda cls: issubclass(cls, Callback)
    monkeypatch.setitem(sys.modules, "acme", package)
    monkeypatch.setitem(sys.modules, "acme_wrapper", wrapper)
    entry = EntryPoint("acme", "acme_wrapper", ENTRY_POINT_GROUP)
    monkeypatch.setattr(adapters, "declared_adapters", lambda: {"acme": entry})
    return package


def test_register_hook_wraps_a_foreign_callback(framework, tmp_path):
    runner = make_runner(tmp_path)
    hook = runner.register_hook(framework.Stopper(5))
    runner.train()
    assert hook.callback.patience == 5
    assert hook.calls == 8


def test_a_subclass_of_the_users_own_is_recognised_by_its_base(framework):
    class Mine(framework.Callback):
        pass

    assert isinstance(adapt(Mine()), Wrapped)


def test_other_objects_of_the_framework_are_no_hooks(framework, tmp_path):
    with pytest.raises(TypeError, match="BaseHook"):
        make_runner(tmp_path).register_hook(framework.Other())


def test_a_config_names_it_by_its_dotted_path(framework):
    hook = HOOKS.build({"type": "acme.Stopper", "patience": 7, "name": "stop", "priority": "LOW"})
    assert (hook.callback.patience, hook.name, hook.priority) == (7, "stop", "LOW")


def test_its_parameters_are_checked_like_those_of_a_hook(framework):
    with raises_problem(component="Stopper", parameter="patiance", nearest="patience"):
        HOOKS.build({"type": "acme.Stopper", "patiance": 7})
    with raises_problem(component="Stopper", parameter="patience", value="many"):
        HOOKS.build({"type": "acme.Stopper", "patience": "many"})


def test_a_class_of_the_framework_that_is_no_callback_is_refused(framework):
    with raises_problem(path=("type",), parameter="type", value="acme.Other"):
        HOOKS.build("acme.Other")


def test_a_framework_that_is_not_installed_is_an_unknown_module(monkeypatch):
    monkeypatch.setitem(sys.modules, "composer", None)
    with pytest.raises(ConfigError, match="composer.callbacks"):
        HOOKS.build("composer.callbacks.NaNMonitor")


def test_the_package_declares_an_adapter_for_each_framework():
    declared = {entry.name for entry in entry_points(group=ENTRY_POINT_GROUP)}
    assert {"lightning", "pytorch_lightning", "transformers", "keras", "composer"} <= declared
    assert all(find_spec(entry.module) for entry in entry_points(group=ENTRY_POINT_GROUP))
