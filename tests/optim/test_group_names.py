from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.errors import HooklineError
from hookline.optim.group_names import (
    add_missing_groups,
    frozen_names,
    group_names,
    has_added_groups,
    has_fewer_groups,
    name_parameters,
    restore_frozen,
)


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1, bias=False))


@pytest.fixture
def named(model: nn.Module) -> dict[str, nn.Parameter]:
    return name_parameters({"model": model, "number": 3})


def sgd(*parameters: nn.Parameter) -> torch.optim.SGD:
    return torch.optim.SGD(parameters, lr=0.1)


def test_parameters_have_the_name_of_their_module_in_front(named, model) -> None:
    assert list(named) == ["model.0.weight", "model.0.bias", "model.1.weight"]
    assert named["model.1.weight"] is model[1].weight


def test_groups_are_named_by_optimizer(named, model) -> None:
    other = nn.Parameter(torch.ones(1))
    optimizer = sgd(model[0].weight, other)
    optimizer.add_param_group({"params": [model[0].bias]})
    groups = [["model.0.weight", ""], ["model.0.bias"]]
    assert group_names(optimizer, named) == {"": groups}
    second = sgd(model[1].weight)
    assert group_names({"a": optimizer, "b": second}, named) == {
        "a": groups,
        "b": [["model.1.weight"]],
    }
    assert group_names(None, named) == {}


def test_hooks_freezing_is_restored_and_the_users_is_kept(named, model) -> None:
    model[0].bias.requires_grad_(False)  # by the user, since the checkpoint
    model[1].weight.requires_grad_(False)
    initial = ["model.0.bias", "model.1.weight"]
    saved = {"initial": ["model.1.weight"], "saved": ["model.0.weight"]}
    restore_frozen(named, saved, initial)
    assert frozen_names(named) == ["model.0.weight", "model.0.bias"]


@pytest.mark.parametrize(
    ("saved", "initial", "added"),
    [
        ({"": [["a"], ["b"]]}, [{"lr": 1}], True),
        ({"": [["a"]]}, [{"lr": 1}], False),
        ({"": [["a"]]}, None, True),
        ({"one": [["a"]], "two": [["b"], ["c"]]}, {"one": [{}], "two": [{}]}, True),
        ({"one": [["a"]], "new": [["b"], ["c"]]}, {"one": [{}]}, False),
        ({}, [{}], False),
    ],
)
def test_added_groups_are_more_than_the_user_made(saved, initial, added: bool) -> None:
    assert has_added_groups(saved, initial) is added


def test_fewer_groups_than_saved_are_found(model) -> None:
    optimizer = sgd(model[0].weight)
    one, two = {"param_groups": [{}]}, {"param_groups": [{}, {}]}
    assert not has_fewer_groups(optimizer, one)
    assert has_fewer_groups(optimizer, two)
    assert has_fewer_groups({"a": optimizer, "b": sgd(model[0].bias)}, {"a": one, "b": two})
    assert not has_fewer_groups({"a": optimizer}, {})
    assert not has_fewer_groups(None, two)


def test_missing_groups_are_added_by_the_names_of_their_parameters(named, model) -> None:
    optimizer = sgd(model[0].weight)
    saved = {"": [["model.0.weight"], ["model.0.bias", "model.1.weight"]]}
    add_missing_groups(optimizer, saved, named)
    assert group_names(optimizer, named) == saved
    add_missing_groups(optimizer, saved, named)
    assert len(optimizer.param_groups) == 2


def test_a_group_of_unknown_parameters_is_an_error(named, model) -> None:
    with pytest.raises(HooklineError) as caught:
        add_missing_groups(sgd(model[0].weight), {"": [[], ["model.7.bias", ""]]}, named)
    assert caught.value.parameter == "optimizer"
    assert "model.7.bias" in str(caught.value)
