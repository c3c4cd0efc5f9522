"""Schedule policies without a hook."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from hookline.errors import ConfigError
from hookline.optim import policies
from tests.problems import raises_problem


@dataclass
class CosineRestartLr(policies.ToMinLr, policies.CosineRestart):
    """A policy made of a shape and a target."""


def test_a_target_is_a_value_or_a_ratio_of_the_initial_one():
    assert CosineRestartLr([4], min_lr=0.1).target(2.0) == 0.1
    assert CosineRestartLr([4], min_lr_ratio=0.1).target(2.0) == 0.2


def test_the_target_comes_after_the_parameters_of_the_shape():
    policy = CosineRestartLr([2, 2], [1, 0.5], 0.0)
    assert [policy.compute(1.0, progress, 4) for progress in range(4)] == pytest.approx(
        [1.0, 0.5, 0.5, 0.25]
    )


@pytest.mark.parametrize("given", [{}, {"min_lr": 0.1, "min_lr_ratio": 0.1}])
def test_exactly_one_target_is_required(given):
    with pytest.raises(ConfigError) as caught:
        CosineRestartLr([4], **given)
    assert (caught.value.component, caught.value.parameter) == ("CosineRestartLr", "min_lr")


def test_a_policy_fits_every_run_by_default():
    assert policies.Fixed().fit(7) == 7


def test_periods_must_cover_the_run():
    policy = CosineRestartLr([3, 3], [1, 1], min_lr=0.0)
    assert policy.fit(6) == 6
    with pytest.raises(ConfigError) as caught:
        policy.fit(7)
    assert caught.value.parameter == "periods"


def test_one_cycle_has_the_length_of_the_run_or_its_own():
    assert policies.OneCycleLr(0.1).fit(10) == 10
    assert policies.OneCycleLr(0.1, total_steps=20).fit(10) == 20
    with pytest.raises(ConfigError) as caught:
        policies.OneCycleLr(0.1, total_steps=9).fit(10)
    assert (caught.value.parameter, caught.value.value) == ("total_steps", 9)


def test_one_cycle_keeps_its_last_value_after_the_end():
    policy = policies.OneCycleLr(0.5)
    assert policy.compute(0.02, 12, 10) == policy.compute(0.02, 9, 10) == pytest.approx(0.02e-4)


def test_one_ratio_of_a_cycle_gives_the_second():
    policy = policies.Cyclic(10, cyclic_times=1, step_ratio_up=0.5, anneal_strategy="linear")
    assert [policy.compute(1.0, progress, 4) for progress in range(4)] == pytest.approx(
        [1.0, 5.5, 10.0, 5.00005]
    )


def test_the_decay_of_a_cycle_is_above_zero():
    assert policies.Cyclic(10, gamma=1).gamma == 1
    for gamma in (0, 1.5):
        with raises_problem(component="Cyclic", parameter="gamma"):
            policies.Cyclic(10, gamma=gamma)


def test_steps_do_not_fall_below_the_minimum():
    assert policies.StepLr(1, 0.1, min_lr=0.05).compute(1.0, 5, 0) == 0.05
    assert policies.StepMomentum([1, 2], min_momentum=0.3).compute(1.0, 5, 0) == 0.3


def test_one_cycle_of_the_momentum_keeps_its_last_value_after_the_end():
    policy = policies.OneCycleMomentum()
    assert policy.compute(0.95, 12, 10) == policy.compute(0.95, 9, 10) == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("policy", "needs_end"),
    [
        (policies.PolyLr(min_lr=0.0), True),
        (policies.OneCycleLr(0.1), True),
        (policies.OneCycleMomentum(), True),
        (policies.Cyclic(10), True),
        (policies.StepLr(2), False),
    ],
)
def test_policies_that_end_with_the_run_need_its_length(policy, needs_end):
    assert policy.needs_end is needs_end
