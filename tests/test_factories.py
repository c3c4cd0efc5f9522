"""Which functions a config may call, and what becomes of their results."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

import pytest
from torch import nn

from hookline.errors import ConfigError
from hookline.factories import code_problems, is_factory, name_of
from hookline.registry import Registry
from tests.problems import raises_problem


class Net(nn.Linear):
    """A model with class methods."""

    @classmethod
    def small(cls, width: int) -> Net:
        return cls(width, 2)

    @classmethod
    def load_from_checkpoint(cls, path: str):
        raise AssertionError("called")


class Auto:
    """Builds models, but is none."""

    @classmethod
    def from_pretrained(cls, name: str, *rest: Any, **options: Any):
        return Net(*options.pop("sizes", (3, 2)))

    @classmethod
    def from_config(cls, sizes: list[int]):
        return "no model"

    @classmethod
    def build(cls) -> nn.Module:
        return Net(1, 1)

    @classmethod
    def run(cls):
        raise AssertionError("called")


def create_model(name: str, width: int = 3) -> nn.Module:
    return Net(width, 2)


def either() -> Net | nn.Conv2d:
    return Net(1, 1)


def trusting(name: str, trust_remote_code: bool = False) -> nn.Module:
    return Net(3, 2)


def undeclared():
    raise AssertionError("called")


def optional() -> nn.Module | None:
    raise AssertionError("called")


def other() -> str:
    raise AssertionError("called")


def _private() -> nn.Module:
    raise AssertionError("called")


@functools.wraps(len)
def wrapped(*args) -> nn.Module:
    raise AssertionError("called")


def liar() -> nn.Module:
    return "no model"  # type: ignore[return-value]


@pytest.fixture
def models(monkeypatch) -> Registry[nn.Module]:
    module = types.ModuleType("factory_module")
    vars(module).update({key: value for key, value in globals().items() if key[0] != "_"})
    monkeypatch.setitem(sys.modules, "factory_module", module)
    return Registry("model", nn.Module, factories=True)


def test_only_declared_functions_are_factories():
    accepted = [Net.small, Auto.from_pretrained, Auto.from_config, Auto.build, create_model, either]
    assert all(is_factory(each, nn.Module) for each in accepted)
    shortcut: Callable[[], nn.Module] = lambda: Net(1, 1)  # noqa: E731
    shortcut.__annotations__["return"] = nn.Module
    refused = [
        Auto.run,
        Net.load_from_checkpoint,
        _private,
        undeclared,
        optional,
        other,
        shortcut,
        types.MethodType(create_model, "no class"),
        functools.partial(create_model),
        print,
    ]
    assert not any(is_factory(each, nn.Module) for each in refused)
    assert not is_factory(Net(1, 1).forward, nn.Module)


@pytest.mark.parametrize(
    ("config", "features"),
    [
        ({"type": "create_model", "args": ["any"]}, 3),
        ({"type": "create_model", "args": ["any", 4]}, 4),
        ({"type": "create_model", "name": "any", "width": 5}, 5),
        ({"type": "Net", "args": [6, 2]}, 6),
        ({"type": "Net.small", "width": 7}, 7),
        ({"type": "Auto.from_pretrained", "args": ["a", "b"], "sizes": [8, 2]}, 8),
    ],
)
def test_a_config_builds_with_classes_class_methods_and_functions(models, config, features):
    built = models.build({**config, "type": f"factory_module.{config['type']}"})
    assert built.in_features == features


@pytest.mark.parametrize("name", ["liar", "Auto.from_config"])
def test_a_result_of_another_kind_is_refused(models, name):
    more = {"sizes": [1]} if name == "Auto.from_config" else {}
    with raises_problem(component=name, message="returned a str, which is not a model"):
        models.build({"type": f"factory_module.{name}", **more})


@pytest.mark.parametrize(
    "name", ["undeclared", "Auto.run", "optional", "nn.Linear", "Auto.missing", "functools.partial"]
)
def test_other_functions_are_refused_before_they_are_called(models, name):
    with pytest.raises(ConfigError):
        models.build({"type": f"factory_module.{name}"})


def test_a_registered_function_needs_no_annotation(models):
    @models.register()
    def tiny(width=3):
        return Net(width, 2)

    @models.register("wide")
    def build_wide(width=30):
        return Net(width, 2)

    assert models.build("tiny").in_features == 3
    assert models.build({"type": "wide", "width": 31}).in_features == 31
    with raises_problem(parameter="widht", nearest="width"):
        models.build({"type": "wide", "widht": 31})


def test_a_registry_of_classes_takes_no_functions(models):
    with pytest.raises(ConfigError):
        Registry("model", nn.Module).build({"type": "factory_module.create_model", "name": "a"})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"args": ["a", 1, 2]}, "takes at most 2 positional arguments, but 'args' has 3"),
        ({"args": ["a"], "name": "b"}, "'name' is given by name and in 'args'"),
        ({"args": ["a", "wide"]}, "'width' must be a whole number"),
        ({"args": []}, "missing 'name'"),
    ],
)
def test_positional_arguments_are_checked(models, arguments, message):
    with raises_problem(message=message):
        models.build({"type": "factory_module.create_model", **arguments})


@pytest.mark.parametrize(
    ("args", "nearest"), [("gpt2", "args: [gpt2]"), (3, "args: [3]"), ({"a": 1}, None)]
)
def test_positional_arguments_that_are_no_list_are_an_error(models, args, nearest):
    with raises_problem(parameter="args", path=("args",), nearest=nearest):
        models.build({"type": "factory_module.create_model", "args": args})


def test_code_of_a_model_is_trusted_only_outside_the_config(models, monkeypatch):
    config = {"type": "factory_module.Auto.from_pretrained", "args": ["a"]}
    monkeypatch.delenv("HOOKLINE_TRUST_REMOTE_CODE", raising=False)
    with raises_problem(parameter="trust_remote_code", path=("trust_remote_code",)):
        models.build({**config, "trust_remote_code": True})
    assert code_problems({"trust_remote_code": False, "weights_only": True}) == []
    positional = {"type": "factory_module.trusting", "args": ["a", True]}
    with raises_problem(parameter="trust_remote_code", path=("args", 1)):
        models.build(positional)
    assert models.build({**positional, "args": ["a", False]}).in_features == 3
    for name, value in {
        "allow_all_kernels": True,
        "kernel_config": {"any": "kernel"},
        "custom_pipeline": "folder",
        "custom_generate": "folder",
        "load_weights_only": False,
        "import_allowlist": ["any"],
    }.items():
        assert [each.path for each in code_problems({name: value})] == [(name,)]
        assert code_problems({name: None}) == []
    nested = {"options": [{"weights_only": False}]}
    assert [each.path for each in code_problems(nested)] == [("options", 0, "weights_only")]
    monkeypatch.setenv("HOOKLINE_TRUST_REMOTE_CODE", "1")
    models.build({**config, "trust_remote_code": True})


def test_a_factory_is_named_with_its_class():
    assert name_of(Auto.from_pretrained) == "Auto.from_pretrained"
    assert name_of(create_model) == "create_model"
