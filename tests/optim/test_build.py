"""Optimizers from a config: one, or several by name."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from hookline.errors import ConfigError
from hookline.optim import OPTIMIZERS
from hookline.optim.build import build_optimizers, check_extra, has_groups, is_several
from tests.helpers import small_model

MUON = {"matrices": {"type": "Muon", "params": "*.weight@2d"}, "rest": {"type": "AdamW"}}


def problem_of(config: dict[str, Any], model: nn.Module | None = None) -> Any:
    with pytest.raises(ConfigError) as caught:
        build_optimizers(OPTIMIZERS, config, model or small_model())
    return caught.value.problems[0]


def test_several_optimizers_share_the_parameters() -> None:
    model = small_model()
    optimizers = build_optimizers(OPTIMIZERS, MUON, model)
    assert isinstance(optimizers, dict)
    assert type(optimizers["matrices"]) is torch.optim.Muon
    held = {
        name: [each.ndim for each in optimizer.param_groups[0]["params"]]
        for name, optimizer in optimizers.items()
    }
    assert held == {"matrices": [2, 2], "rest": [1, 1]}


def test_one_of_several_optimizers_may_have_groups() -> None:
    config = {**MUON, "rest": {"type": "SGD", "lr": 0.5, "groups": {"last": {"params": "2"}}}}
    rest: Any = build_optimizers(OPTIMIZERS, config, small_model())["rest"]  # type: ignore[index]
    assert [group["name"] for group in rest.param_groups] == ["rest", "last"]


def test_frozen_parameters_are_left_out() -> None:
    model = small_model()
    model[0].requires_grad_(False)
    optimizer: Any = build_optimizers(OPTIMIZERS, {"type": "SGD", "lr": 0.1}, model)
    assert len(optimizer.param_groups[0]["params"]) == 2


def test_overlapping_patterns_are_an_error_with_both_optimizers() -> None:
    config = {"a": {"type": "SGD", "params": "0"}, "b": {"type": "SGD", "params": "*.bias"}}
    problem = problem_of(config)
    assert problem.path == ("b", "params")
    assert "'a'" in problem.message
    assert "0.bias" in problem.message


def test_a_parameter_without_an_optimizer_is_an_error_with_its_name() -> None:
    problem = problem_of(
        {"a": {"type": "SGD", "params": "0"}, "b": {"type": "SGD", "params": "2.bias"}}
    )
    assert "2.weight" in problem.message


def test_no_decay_for_an_optimizer_without_decay_is_an_error() -> None:
    problem = problem_of({"type": "Rprop", "no_decay": ["bias"]})
    assert (problem.path, problem.parameter) == (("no_decay",), "no_decay")


def test_an_optimizer_without_parameters_is_an_error() -> None:
    assert problem_of({"a": {"type": "SGD", "params": "*"}, "b": {"type": "SGD"}}).path == ("b",)
    assert problem_of({"a": {"type": "SGD"}, "b": {"type": "SGD"}}).path == ("b",)


def test_parameters_that_an_optimizer_refuses_are_an_error_with_their_names() -> None:
    problem = problem_of({"a": {"type": "Muon", "params": "0"}, "b": {"type": "SGD"}})
    assert problem.path == ("a",)
    assert "0.bias" in problem.suggestion.advice


@pytest.mark.parametrize(
    ("config", "several", "grouped"),
    [
        (MUON, True, True),
        ({"type": "SGD", "lr": 0.1}, False, False),
        ({"lr": 0.1}, False, False),
        ({"groups": {"a": {"params": "0"}}}, False, True),
        ({"type": "SGD", "no_decay": ["bias"]}, False, True),
        ({"type": "SGD", "options": {"type": "SGD"}}, False, False),
        ("SGD", False, False),
    ],
)
def test_the_form_of_a_config_is_recognized(config: Any, several: bool, grouped: bool) -> None:
    assert is_several(config) is several
    assert has_groups(config) is grouped


@pytest.mark.parametrize(
    ("config", "path", "parameter"),
    [
        ({"no_decay": 3}, ("no_decay",), "no_decay"),
        ({"groups": ["0"]}, ("groups",), "groups"),
        ({"groups": {"head": "0"}}, ("groups", "head"), None),
        ({"groups": {"head": {"lr": 0.1}}}, ("groups", "head"), "params"),
        ({"groups": {"head": {"params": "0", "lrr": 0.1}}}, ("groups", "head", "lrr"), "lrr"),
    ],
)
def test_groups_with_mistakes_are_found_without_a_model(
    config: dict[str, Any], path: Any, parameter: str | None
) -> None:
    (problem,) = check_extra(config, torch.optim.SGD)
    assert (problem.path, problem.parameter) == (path, parameter)


def test_right_groups_have_no_problem() -> None:
    groups = {"head": {"params": ["0", "2"], "lr": 0.1, "weight_decay": 0.0}}
    assert check_extra({"groups": groups, "no_decay": "bias"}, torch.optim.SGD) == []


def test_the_decay_by_layer_of_one_of_several_optimizers_starts_at_the_default_rate() -> None:
    config = {
        "last": {"type": "SGD", "lr": 0.1, "params": "2"},
        "rest": {"type": "AdamW", "layer_decay": 0.5},
    }
    rest: Any = build_optimizers(OPTIMIZERS, config, small_model())["rest"]  # type: ignore[index]
    assert [group["lr"] for group in rest.param_groups] == [0.0005]
