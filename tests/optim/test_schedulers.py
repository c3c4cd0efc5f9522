"""Building and finding scheduler objects."""

from __future__ import annotations

import pytest
import torch
from torch.optim import lr_scheduler

from hookline.errors import ConfigError
from hookline.optim import SCHEDULERS
from hookline.optim.schedulers import (
    build_schedulers,
    check_unit,
    each_scheduler,
    find_doubts,
    follows_metric,
)
from tests.problems import raises_problem


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)


def test_schedulers_are_found_in_lists_and_mappings():
    assert list(each_scheduler(None)) == []
    assert list(each_scheduler(1)) == [1]
    assert list(each_scheduler({"one": [1, 2], "two": 3})) == [1, 2, 3]


def test_a_config_builds_a_scheduler_with_its_unit():
    built = build_schedulers(SCHEDULERS, {"type": "ConstantLR", "by_epoch": False}, optimizer())
    assert isinstance(built, lr_scheduler.ConstantLR)
    assert built.by_epoch is False


def test_a_mapping_builds_schedulers_by_optimizer():
    optimizers = {"one": optimizer(), "two": optimizer()}
    config = {"one": "ConstantLR", "two": [{"type": "ReduceLROnPlateau", "monitor": "loss"}]}
    built = build_schedulers(SCHEDULERS, config, optimizers)
    assert built["one"].optimizer is optimizers["one"]
    assert follows_metric(built["two"][0])
    assert built["two"][0].monitor == "loss"


def test_objects_are_passed_through():
    scheduler = lr_scheduler.ConstantLR(optimizer())
    assert build_schedulers(SCHEDULERS, scheduler, scheduler.optimizer) is scheduler


def test_an_unknown_optimizer_is_refused_with_a_suggestion():
    with pytest.raises(ConfigError) as caught:
        build_schedulers(SCHEDULERS, {"fist": "ConstantLR"}, {"first": optimizer()})
    assert caught.value.suggestion.nearest == "first"


def test_several_optimizers_need_a_mapping():
    optimizers = {"one": optimizer(), "two": optimizer()}
    with pytest.raises(ConfigError) as caught:
        build_schedulers(SCHEDULERS, "ConstantLR", optimizers)
    assert caught.value.suggestion.known == ("one", "two")


def test_a_scheduler_with_more_steps_than_epochs_is_not_stepped_by_epochs():
    cycle = lr_scheduler.OneCycleLR(optimizer(), max_lr=0.1, total_steps=20)
    check_unit("H", cycle, True, 20, optimizer())
    check_unit("H", cycle, True, None, optimizer())
    check_unit("H", cycle, False, 5, optimizer())
    with raises_problem(component="H", parameter="by_epoch") as caught:
        check_unit("H", cycle, True, 5, optimizer())
    assert "OneCycleLR has 20 steps" in str(caught.value)


def test_a_scheduler_is_not_stepped_with_an_optimizer_that_is_missing():
    step = lr_scheduler.StepLR(optimizer(), 1)
    check_unit("H", step, True, 5, None)
    with raises_problem(component="H", parameter="by_epoch") as caught:
        check_unit("H", step, False, 5, None)
    assert "StepLR" in str(caught.value)


def test_a_scheduler_of_another_optimizer_is_doubted() -> None:
    own, other = optimizer(), optimizer()
    for scheduler in (lr_scheduler.StepLR(other, 1), lr_scheduler.ReduceLROnPlateau(other)):
        (doubt,) = find_doubts(scheduler, True, 3, own)
        assert "another optimizer" in doubt
        assert not list(find_doubts(scheduler, True, 3, {"a": own, "b": other}))


def test_a_scheduler_stepped_with_the_optimizer_should_have_the_length_of_the_run() -> None:
    own = optimizer()
    cycle = lr_scheduler.OneCycleLR(own, 0.1, total_steps=20)
    (doubt,) = find_doubts(cycle, False, 3, own, 5)
    assert "total_steps=20 is stepped only 5 times" in doubt
    (doubt,) = find_doubts(cycle, False, 3, own, 30)
    assert "set total_steps=30" in doubt
    warm_up = lr_scheduler.LinearLR(own, 0.1, 1, 20)
    (doubt,) = find_doubts(warm_up, False, 3, own, 5)
    assert "total_iters=20" in doubt
    assert not list(find_doubts(warm_up, False, 3, own, 30))
    for scheduler in (cycle, lr_scheduler.CosineAnnealingLR(own, 20)):
        assert not list(find_doubts(scheduler, False, 3, own, 20))
        assert not list(find_doubts(scheduler, False, 3, own, None))


def test_a_scheduler_that_lasts_longer_than_the_epochs_is_doubted() -> None:
    own = optimizer()
    for scheduler in (
        lr_scheduler.CosineAnnealingLR(own, 20),
        lr_scheduler.LinearLR(own, 0.1, 1, 20),
    ):
        (doubt,) = find_doubts(scheduler, True, 3, own)
        assert "=20" in doubt
        assert not list(find_doubts(scheduler, True, 20, own))
        assert not list(find_doubts(scheduler, False, 3, own))
        assert not list(find_doubts(scheduler, True, None, own))
