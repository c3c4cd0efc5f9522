"""Which group's learning rate stands for all."""

from __future__ import annotations

import torch

from hookline.optim.groups import learning_rates, momentum_of, representative_group


def groups(*sizes_and_rates: tuple[int, float]) -> torch.optim.Optimizer:
    return torch.optim.SGD([{"params": [torch.zeros(1) for _ in range(size)], "lr": rate} for size, rate in sizes_and_rates])


def test_the_group_with_most_parameters_is_representative():
    assert representative_group(groups((1, 0.1), (3, 0.2), (3, 0.3))) == 1


def test_among_groups_of_one_the_first_with_the_most_common_rate_is():
    assert representative_group(groups((1, 0.5), (1, 0.2), (1, 0.2))) == 1


def test_rates_of_one_several_and_no_optimizers():
    one = groups((1, 0.1), (1, 0.2))
    assert learning_rates(one) == {"lr": 0.1, "lr/1": 0.2}
    assert learning_rates(one, main=1) == {"lr": 0.2, "lr/0": 0.1}
    assert learning_rates({"g": one, "d": groups((1, 0.3))}) == {"lr_g": 0.1, "lr_g/1": 0.2, "lr_d": 0.3}
    one.param_groups[1]["name"] = "head"
    assert learning_rates(one) == {"lr": 0.1, "lr/head": 0.2}
    assert learning_rates(None) == {}


def test_momentum_goes_by_two_names():
    assert momentum_of({"betas": (0.8, 0.99)}) == 0.8
    assert momentum_of({"momentum": 0.7}) == 0.7
    assert momentum_of({"lr": 0.1}) is None
