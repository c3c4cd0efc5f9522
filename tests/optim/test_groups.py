"""Parameter groups, their learning rates and momenta."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from hookline.errors import ConfigError
from hookline.optim.groups import (
    choose_groups,
    describe_group,
    learning_rates,
    momentum_of,
    representative_group,
    set_momentum,
    values_per_group,
)


def groups(*sizes_and_rates: tuple[int, float]) -> torch.optim.Optimizer:
    return torch.optim.SGD(
        [
            {"params": [torch.zeros(1) for _ in range(size)], "lr": rate}
            for size, rate in sizes_and_rates
        ]
    )


def test_the_group_with_the_most_parameters_is_representative():
    assert representative_group(groups((1, 0.1), (3, 0.2), (3, 0.3))) == 1


def test_of_groups_with_one_parameter_the_first_with_the_most_common_rate_is_representative():
    assert representative_group(groups((1, 0.5), (1, 0.2), (1, 0.2))) == 1


def test_rates_of_one_several_and_no_optimizers():
    one = groups((1, 0.1), (1, 0.2))
    assert learning_rates(one) == {"lr": 0.1, "lr/1": 0.2}
    assert learning_rates(one, main=1) == {"lr": 0.2, "lr/0": 0.1}
    assert learning_rates({"g": one, "d": groups((1, 0.3))}) == {
        "lr_g": 0.1,
        "lr_g/1": 0.2,
        "lr_d": 0.3,
    }
    one.param_groups[1]["name"] = "head"
    assert learning_rates(one) == {"lr": 0.1, "lr/head": 0.2}
    assert learning_rates(None) == {}


def test_the_momentum_of_adam_is_its_first_beta():
    assert momentum_of({"betas": (0.8, 0.99)}) == 0.8
    assert momentum_of({"momentum": 0.7}) == 0.7
    assert momentum_of({"lr": 0.1}) is None


def test_a_set_momentum_keeps_the_other_betas():
    group = {"betas": (0.8, 0.99)}
    set_momentum(group, 0.5)
    assert group == {"betas": (0.5, 0.99)}


@pytest.mark.parametrize(
    ("given", "values"),
    [(0.5, [0.5, 0.5]), ([0.5, 0.6], [0.5, 0.6]), ({"d": (0.5, 0.6)}, [0.5, 0.6])],
)
def test_a_parameter_has_one_value_for_each_group(given, values):
    owner = SimpleNamespace(max_lr=given)
    assert values_per_group(owner, "max_lr", "d", groups((1, 0.1), (1, 0.2))) == values


@pytest.mark.parametrize("given", [[0.5], {"g": 0.5}, []])
def test_values_that_do_not_fit_the_groups_are_refused(given):
    owner = SimpleNamespace(max_lr=given)
    with pytest.raises(ConfigError) as caught:
        values_per_group(owner, "max_lr", "d", groups((1, 0.1), (1, 0.2)))
    assert (caught.value.parameter, caught.value.value) == ("max_lr", given)


def named_groups() -> dict[str, torch.optim.Optimizer]:
    named = [{"params": [torch.zeros(1)], "name": name} for name in ("first", "bias")]
    return {"adam": torch.optim.AdamW(named), "sgd": groups((1, 0.1))}


def test_groups_are_chosen_by_their_name_or_their_optimizers():
    optimizers = named_groups()
    adam = optimizers["adam"].param_groups
    assert choose_groups(optimizers, ["bias"], "hook") == [adam[1]]
    assert choose_groups(optimizers, ["adam"], "hook") == adam
    assert choose_groups(optimizers, ["adam/first", "sgd"], "hook")[0] is adam[0]
    assert len(choose_groups(optimizers, None, "hook")) == 3


def test_an_unknown_group_is_an_error_with_the_nearest():
    with pytest.raises(ConfigError) as caught:
        choose_groups(named_groups(), ["adan"], "hook")
    assert caught.value.suggestion.nearest == "adam"
    assert (caught.value.component, caught.value.parameter) == ("hook", "groups")


def test_a_choice_without_names_is_an_error():
    with pytest.raises(ConfigError) as caught:
        choose_groups(named_groups(), [], "hook")
    assert caught.value.parameter == "groups"


@pytest.mark.parametrize(
    ("optimizer", "name", "expected"),
    [
        ("", None, "the parameter group"),
        ("", "head", "the parameter group 'head'"),
        ("rest", None, "the parameter group 'rest'"),
        ("rest", "head", "the parameter group 'rest/head'"),
    ],
)
def test_a_group_is_described_with_its_names(optimizer, name, expected):
    named = groups((1, 0.1))
    if name is not None:
        named.param_groups[0]["name"] = name
    optimizers = {"other": groups((1, 0.1)), optimizer: named}
    assert describe_group(named.param_groups[0], optimizers) == expected
