"""Optimizers with modes for training and evaluation."""

from __future__ import annotations

import torch

from hookline.optim.modes import OptimizerModes, switchable
from tests.helpers import batches, small_model
from tests.optim.schedule_free import ScheduleFreeSGD


def test_only_optimizers_with_both_methods_are_switched() -> None:
    model = small_model()
    free = ScheduleFreeSGD(model[0].parameters())
    plain = torch.optim.SGD(model[2].parameters(), lr=0.1)
    assert switchable({"free": free, "plain": plain}) == [free]
    assert not OptimizerModes(plain)
    assert not OptimizerModes(None)


def test_an_exact_switch_restores_the_training_weights_bit_by_bit() -> None:
    model = small_model()
    optimizer = ScheduleFreeSGD(model.parameters(), beta=0.7)
    modes = OptimizerModes(optimizer)
    modes.train()
    for inputs, targets in batches():
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad()
    before = [each.detach().clone() for each in model.parameters()]
    modes.eval(exact=True)
    assert not torch.equal(before[0], model[0].weight)
    modes.train()
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert optimizer.param_groups[0]["train_mode"] is True
