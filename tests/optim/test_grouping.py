"""Parameter groups from rules, and their table."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hookline.errors import ConfigError
from hookline.optim.grouping import check_disjoint, describe_groups, make_groups

DEFAULTS = {"lr": 0.1, "weight_decay": 0.5}


def stack() -> nn.Module:
    model = nn.Module()
    model.stem = nn.Linear(2, 3)
    model.layers = nn.ModuleList([nn.Linear(3, 3), nn.LayerNorm(3)])
    model.head = nn.Linear(3, 1)
    return model


def values(groups: list[dict[str, Any]], key: str) -> dict[str, Any]:
    return {group["name"]: group.get(key, DEFAULTS[key]) for group in groups}


def sizes(groups: list[dict[str, Any]]) -> dict[str, int]:
    return {group["name"]: len(group["params"]) for group in groups}


def test_parameters_without_decay_are_a_group_and_all_are_in_exactly_one() -> None:
    groups = make_groups(stack(), DEFAULTS, no_decay=["bias", "norm"])
    assert sizes(groups) == {"decay": 3, "no_decay": 5}
    assert values(groups, "weight_decay") == {"decay": 0.5, "no_decay": 0.0}


def test_rules_multiply_rates_and_decay_and_set_other_values() -> None:
    rules = {
        "head": {"params": "head", "lr_factor": 10, "weight_decay_factor": 0.5},
        "stem": {"params": "stem.*", "lr": 0.7, "betas": (0.8, 0.9)},
    }
    groups = make_groups(stack(), DEFAULTS, groups=rules)
    assert values(groups, "lr") == {"stem": 0.7, "rest": 0.1, "head": 1.0}
    assert values(groups, "weight_decay") == {"stem": 0.5, "rest": 0.5, "head": 0.25}
    assert groups[0]["betas"] == (0.8, 0.9)


def test_each_layer_below_the_last_has_a_smaller_rate() -> None:
    groups = make_groups(stack(), DEFAULTS, layer_decay=0.5)
    rates = {"layer_0": 0.1 / 8, "layer_1": 0.1 / 4, "layer_2": 0.1 / 2, "layer_3": 0.1}
    assert values(groups, "lr") == rates
    assert sizes(groups) == dict.fromkeys(rates, 2)


def test_layers_of_a_plain_sequence_are_its_elements() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2))
    groups = make_groups(model, DEFAULTS, layer_decay={"rate": 0.5})
    assert values(groups, "lr") == {"layer_0": 0.05, "layer_1": 0.1}


def test_layers_rules_and_decay_combine() -> None:
    rules = {"head": {"params": "head", "lr_factor": 2}}
    groups = make_groups(stack(), DEFAULTS, rules, no_decay="bias", layer_decay=0.5)
    assert values(groups, "lr")["head/layer_3/no_decay"] == 0.2
    assert values(groups, "weight_decay")["head/layer_3/no_decay"] == 0.0
    assert values(groups, "lr")["rest/layer_0"] == 0.1 / 8


def test_two_rules_for_one_parameter_are_an_error_with_both_names() -> None:
    rules = {"a": {"params": "head"}, "b": {"params": "*.bias"}}
    with pytest.raises(ConfigError) as caught:
        make_groups(stack(), DEFAULTS, groups=rules)
    problem = caught.value.problems[0]
    assert problem.path == ("groups", "b", "params")
    for word in ("'a'", "'b'", "head.bias"):
        assert word in problem.message


def test_layer_decay_needs_a_learning_rate() -> None:
    with pytest.raises(ConfigError) as caught:
        make_groups(stack(), {"weight_decay": 0.5}, layer_decay=0.5)
    assert caught.value.parameter == "layer_decay"


@pytest.mark.parametrize(
    ("rule", "defaults"),
    [
        ({"lr_fator": 2.0}, DEFAULTS),
        ({"lr_factor": "2"}, DEFAULTS),
        ({"lr": "0.1"}, DEFAULTS),
        ({"lr_factor": 2.0}, {"weight_decay": 0.5}),
        ({"weight_decay_factor": 2.0}, {"lr": 0.1}),
    ],
)
def test_a_rule_that_cannot_be_applied_is_an_error_with_its_key(
    rule: dict[str, Any], defaults: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_groups(stack(), defaults, groups={"head": {"params": "head", **rule}})
    assert caught.value.path == ("groups", "head", *rule)
    assert caught.value.parameter == next(iter(rule))


def test_wrong_layers_are_an_error_with_the_nearest_list() -> None:
    with pytest.raises(ConfigError) as caught:
        make_groups(stack(), DEFAULTS, layer_decay={"rate": 0.5, "layers": "layer"})
    assert caught.value.suggestion.nearest == "layers"
    with pytest.raises(ConfigError):
        make_groups(stack(), DEFAULTS, layer_decay=1.5)
    with pytest.raises(ConfigError):
        make_groups(nn.Linear(2, 2), DEFAULTS, layer_decay=0.5)


def test_the_table_counts_tensors_and_parameters() -> None:
    optimizer = torch.optim.AdamW(make_groups(stack(), DEFAULTS, no_decay="bias"), lr=0.1)
    rows = describe_groups(optimizer)
    assert [(row.group, row.tensors, row.parameters) for row in rows] == [
        ("decay", 4, 21),
        ("no_decay", 4, 10),
    ]
    assert rows[1].weight_decay == 0.0


def test_a_parameter_of_two_optimizers_is_an_error_with_its_name() -> None:
    model = stack()
    optimizers = {
        "first": torch.optim.SGD(model.parameters(), lr=0.1),
        "second": torch.optim.SGD(model.head.parameters(), lr=0.1),
    }
    with pytest.raises(ConfigError) as caught:
        check_disjoint(optimizers, model)
    assert "head.weight" in caught.value.problems[0].message
