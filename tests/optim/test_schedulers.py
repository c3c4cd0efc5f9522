"""Building and finding scheduler objects."""

from __future__ import annotations

import pytest
import torch
from torch.optim import lr_scheduler

from hookline.errors import ConfigError
from hookline.optim import SCHEDULERS
from hookline.optim.schedulers import build_schedulers, each_scheduler, follows_metric


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
