"""The tensors that steps of optimizers change, and calls before these steps."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from hookline.optim.stepped import call_before_steps, stepped_tensors


def step(model: nn.Module, *optimizers: torch.optim.Optimizer) -> None:
    model(torch.ones(1, 2)).sum().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


def test_all_tensors_that_a_step_changes_are_found_and_no_frozen_ones() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].bias.requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)
    found = stepped_tensors(optimizer)
    before = [tensor.detach().clone() for tensor in found]
    step(model, optimizer)
    assert not any(map(torch.equal, before, found))
    assert id(model[0].bias) not in {id(each) for each in found}
    assert len(found) == 3 + 3 * 3  # weights, and for each two moments and a count of steps


def test_the_call_comes_before_each_step_of_each_optimizer_until_it_is_closed() -> None:
    model = nn.Linear(2, 1)
    both = {
        "weight": torch.optim.SGD([model.weight], lr=0.1),
        "bias": torch.optim.SGD([model.bias], lr=0.1),
    }
    seen: list[float] = []
    with call_before_steps(both, lambda: seen.append(model.weight.sum().item())):
        first = model.weight.sum().item()
        step(model, *both.values())
    stepped = model.weight.sum().item()
    assert seen == pytest.approx([first, stepped])
    step(model, *both.values())
    assert len(seen) == 2


def test_without_an_optimizer_there_is_nothing_to_wait_for() -> None:
    assert stepped_tensors(None) == []
    call_before_steps(None, lambda: None).close()
