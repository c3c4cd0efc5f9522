"""Policies for any value, and values of parameter groups by path."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from hookline.engine import HOOKS
from hookline.errors import ConfigError
from hookline.optim.groups import param_groups
from hookline.optim.policies import OneCycleLr, PolyLr, StepLr
from hookline.optim.value_policies import (
    POLICIES,
    check_value,
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
        ({"type": "step", "step": 5, "gamma": 0.3, "min": 0.4}, 0.4),
        ({"type": "poly", "power": 2.0, "to": 0.0}, 0.25),
        ({"type": "one_cycle", "to": 2.0, "pct_start": 0.6}, 2.0),
        ({"type": "cyclic", "target_ratio": [3.0, 1.0], "step_ratio_up": 0.5}, 3.0),
        ({"type": "inv", "gamma": 0.2}, 0.5),
        ({"type": "exp", "gamma": 0.5}, 0.5**5),
        ({"type": "cosine_restart", "to": 0.0, "periods": [10]}, 0.5),
        ("fixed", 1.0),
    ],
)
def test_a_policy_has_its_value_in_the_middle_of_a_run(config: object, expected: float) -> None:
    assert POLICIES.build(config).compute(1.0, 5, 10) == pytest.approx(expected)  # type: ignore[arg-type]


def test_every_learning_rate_policy_exists_for_any_value() -> None:
    suffix = "LrUpdaterHook"
    built_in = [
        name.removesuffix(suffix)
        for name, cls in HOOKS.items()
        if name.endswith(suffix) and cls.__module__.startswith("hookline.")
    ]
    known = {name.replace("_", "") for name in POLICIES.names()}
    assert {name.lower() for name in built_in} - known == set()
    assert len(built_in) >= 12


def test_short_names_mean_the_same_policies() -> None:
    for short in ("cosine", "linear", "flat_cosine"):
        assert POLICIES.get(short) is POLICIES.get(f"{short}_annealing")


def test_a_value_follows_the_same_curve_as_a_learning_rate() -> None:
    ours = POLICIES.build({"type": "step", "step": [2, 4], "gamma": 0.5, "min": 0.3})
    lr = StepLr(step=[2, 4], gamma=0.5, min_lr=0.3)
    cycle = {"pct_start": 0.4, "three_phase": True, "div_factor": 5.0}
    one_cycle = POLICIES.build({"type": "one_cycle", "to": 0.5, **cycle})
    one_cycle_lr = OneCycleLr(max_lr=0.5, **cycle)
    poly = POLICIES.build({"type": "poly", "to": 0.1, "power": 0.9})
    for progress in range(10):
        assert ours.compute(1.0, progress, 10) == lr.compute(1.0, progress, 10)
        expected = one_cycle_lr.compute(0.5 / 5.0, progress, 10)
        assert one_cycle.compute(7.0, progress, 10) == expected
        assert poly.compute(1.0, progress, 10) == PolyLr(0.9, 0.1).compute(1.0, progress, 10)


def test_numbers_are_read_and_written_also_inside_a_tuple() -> None:
    group = two()["adam"].param_groups[0]
    write_value(group, "betas[1]", 0.5)
    write_value(group, "weight_decay", 0.25)
    assert group["betas"] == (0.9, 0.5)
    assert read_value(group, "weight_decay") == 0.25
    assert read_value(group, "betas[2]") is None
    assert read_value(group, "amsgrad") is None
    assert {"lr", "betas[0]", "eps"} <= set(numeric_values(group))


def test_a_value_that_a_group_does_not_have_is_an_error_with_the_nearest() -> None:
    optimizers = two()
    check_value(param_groups(optimizers), "weight_decay", "hook", optimizers)
    with pytest.raises(ConfigError) as caught:
        check_value(optimizers["adam"].param_groups, "weight_decy", "hook", optimizers)
    assert caught.value.suggestion.nearest == "weight_decay"
    with pytest.raises(ConfigError, match="'sgd'"):
        check_value(param_groups(optimizers), "betas[0]", "hook", optimizers)


def test_an_attribute_must_be_a_number() -> None:
    run = SimpleNamespace(loss_fn=SimpleNamespace(alpha=1.0, name="x"), model=None)
    assert find_attribute(run, "loss_fn.alpha", "hook") == (run.loss_fn, "alpha")
    for wrong in ("loss_fn.name", "loss_fn.alhpa", "model.alpha"):
        with pytest.raises(ConfigError):
            find_attribute(run, wrong, "hook")
