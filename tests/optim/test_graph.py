from __future__ import annotations

import torch
from torch import nn

from hookline.optim.graph import outside_graph, without_gradient


def two_heads() -> nn.ModuleDict:
    heads = nn.ModuleDict({"used": nn.Linear(2, 1), "unused": nn.Linear(2, 1)})
    heads["frozen"] = nn.Linear(2, 1).requires_grad_(False)
    return heads


def test_parameters_that_the_loss_does_not_depend_on_are_named() -> None:
    model = two_heads()
    loss = (model["used"](torch.ones(1, 2)) + model["frozen"](torch.ones(1, 2))).sum()
    names = outside_graph(loss, model.named_parameters())
    assert names == ["unused.weight", "unused.bias"]


def test_a_constant_depends_on_nothing() -> None:
    layer = nn.Linear(1, 1)
    assert outside_graph(torch.ones(()), layer.named_parameters()) == ["weight", "bias"]


def test_a_parameter_that_is_used_twice_is_found_once() -> None:
    layer = nn.Linear(2, 2)
    loss = layer(layer(torch.ones(1, 2))).sum()
    assert outside_graph(loss, layer.named_parameters()) == []


def test_trainable_parameters_without_a_gradient_are_named() -> None:
    model = two_heads()
    model["used"](torch.ones(1, 2)).sum().backward()
    assert without_gradient(model.named_parameters()) == ["unused.weight", "unused.bias"]
