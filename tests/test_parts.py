"""Parts inside the models and data sets of a config."""

from __future__ import annotations

import sys
import types

import pytest
from torch import nn

from hookline.config import load_config
from hookline.errors import ConfigError
from hookline.parts import PARTS
from hookline.registry import Registry
from tests.problems import raises_problem


class Wrapper(nn.Module):
    """A model that takes other models."""

    def __init__(self, base: nn.Module, options: dict | None = None) -> None:
        super().__init__()
        self.base = base
        self.options = options


class Stack(nn.Module):
    """A model that takes a list of models."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)


class Thing:
    """A class that is no part."""

    def __init__(self, **options) -> None:
        raise AssertionError("called")


LINEAR = {"type": "torch.nn.Linear", "in_features": 3, "out_features": 2}


@pytest.fixture
def models(monkeypatch) -> Registry[nn.Module]:
    module = types.ModuleType("part_module")
    vars(module).update({"Wrapper": Wrapper, "Stack": Stack, "Thing": Thing})
    monkeypatch.setitem(sys.modules, "part_module", module)
    return Registry("model", nn.Module, factories=True, parts=PARTS)


def test_a_part_is_built_by_the_grammar_of_its_model(models):
    inner = {"type": "part_module.Wrapper", "base": LINEAR}
    built = models.build({"type": "part_module.Wrapper", "args": [inner]})
    assert built.base.base.in_features == 3


def test_parts_may_be_in_lists(models):
    built = models.build({"type": "part_module.Stack", "layers": [LINEAR, LINEAR]})
    assert len(built.layers) == 2
    assert built.layers[0] is not built.layers[1]


def test_a_type_without_a_dot_is_left_to_the_model(models):
    options = {"type": "linear", "factor": 2.0}
    built = models.build({"type": "part_module.Wrapper", "base": LINEAR, "options": options})
    assert built.options == options


@pytest.mark.parametrize("name", ["part_module.Thing", "subprocess.Popen", "os.system"])
def test_a_part_of_another_kind_is_refused_before_it_is_built(models, name):
    with pytest.raises(ConfigError) as caught:
        models.build({"type": "part_module.Wrapper", "base": {"type": name}})
    assert caught.value.problems[0].path == ("base", "type")


def test_a_problem_of_a_part_has_its_place(models):
    wrong = {**LINEAR, "in_feature": 3}
    with raises_problem(parameter="in_feature", path=("layers", 1, "in_feature")):
        models.build({"type": "part_module.Stack", "layers": [LINEAR, wrong]})
    trusting = {**LINEAR, "trust_remote_code": True}
    assert len(models.check({"type": "part_module.Stack", "layers": [trusting]})) == 2


def test_a_part_may_refer_to_another_one(models):
    config = load_config(
        {
            "model": {
                "type": "part_module.Stack",
                "args": [[LINEAR, {**LINEAR, "out_features": "${model.args.0.0.in_features}"}]],
            },
            "dataset": {"train": "digits", "val": "${dataset.train}"},
            "training": {"epochs": 1},
        }
    )
    built = models.build(config["model"])
    assert built.layers[1].out_features == 3
    assert config["dataset"]["val"] == "digits"
    whole = load_config({**config, "model": {**LINEAR, "copy": "${model.type}"}})
    assert whole["model"]["copy"] == "torch.nn.Linear"
