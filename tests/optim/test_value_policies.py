"""Policies for any value, and values of parameter groups by path."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from hookline.errors import ConfigError
from hookline.optim.value_policies import (
    POLICIES,
    check_value,
    choose_groups,
    find_attribute,
    numeric_values,
    read_value,
    write_value,
)
from tests.helpers import small_model


def two() -> dict[str, torch.optim.Optimizer]:
    model = small_model()
    groups = [
        {"params": [model[0].weight], "name": "first"},
        {"params": [model[0].bias], "name": "bias"},
    ]
    return {
        "adam": torch.optim.AdamW(groups),
        "sgd": torch.optim.SGD(model[2].parameters(), lr=0.1),
    }


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"type": "cosine", "to": 0.0}, 0.5),
        ({"type": "linear", "to_ratio": 3.0}, 2.0),
        ({"type": "wsd", "to": 0.0, "decay_ratio": 1.0, "decay_shape": "sqrt"}, 1 - 0.5**0.5),
        ({"type": "flat_cosine", "to": 0.0, "start_percent": 0.9}, 1.0),
        ({"type": "step", "step": 5, "gamma": 0.3}, 0.3),
        ({"type": "exp", "gamma": 0.5}, 0.5**5),
        ({"type": "cosine_restart", "to": 0.0, "periods": [10]}, 0.5),
        ("fixed", 1.0),
    ],
)
def test_a_policy_has_its_value_in_the_middle_of_a_run(config: object, expected: float) -> None:
    assert POLICIES.build(config).compute(1.0, 5, 10) == pytest.approx(expected)  # type: ignore[arg-type]


def test_numbers_are_read_and_written_also_inside_a_tuple() -> None:
    group = two()["adam"].param_groups[0]
    write_value(group, "betas[1]", 0.5)
    write_value(group, "weight_decay", 0.25)
    assert group["betas"] == (0.9, 0.5)
    assert read_value(group, "weight_decay") == 0.25
    assert read_value(group, "betas[2]") is None
    assert read_value(group, "amsgrad") is None
    assert {"lr", "betas[0]", "eps"} <= set(numeric_values(group))


def test_groups_are_chosen_by_their_name_or_their_optimizers() -> None:
    optimizers = two()
    adam = optimizers["adam"].param_groups
    assert choose_groups(optimizers, ["bias"], "hook") == [adam[1]]
    assert choose_groups(optimizers, ["adam"], "hook") == adam
    assert choose_groups(optimizers, ["adam/first", "sgd"], "hook")[0] is adam[0]
    assert len(choose_groups(optimizers, None, "hook")) == 3
    with pytest.raises(ConfigError) as caught:
        choose_groups(optimizers, ["adan"], "hook")
    assert caught.value.suggestion.nearest == "adam"


def test_a_value_that_a_group_does_not_have_is_an_error_with_the_nearest() -> None:
    optimizers = two()
    check_value(choose_groups(optimizers, None, "hook"), "weight_decay", "hook")
    with pytest.raises(ConfigError) as caught:
        check_value(choose_groups(optimizers, ["adam"], "hook"), "weight_decy", "hook")
    assert caught.value.suggestion.nearest == "weight_decay"
    with pytest.raises(ConfigError):
        check_value(choose_groups(optimizers, None, "hook"), "betas[0]", "hook")


def test_an_attribute_must_be_a_number() -> None:
    run = SimpleNamespace(loss_fn=SimpleNamespace(alpha=1.0, name="x"), model=None)
    assert find_attribute(run, "loss_fn.alpha", "hook") == (run.loss_fn, "alpha")
    for wrong in ("loss_fn.name", "loss_fn.alhpa", "model.alpha"):
        with pytest.raises(ConfigError):
            find_attribute(run, wrong, "hook")
