from __future__ import annotations

import torch
from torch import nn

from hookline.visual.gradients import MAX_VALUES, measure_gradient_flow, sample_values


def test_each_layer_with_gradients_has_its_mean_and_largest() -> None:
    model = nn.Sequential(nn.Linear(2, 1), nn.ReLU(), nn.Linear(1, 1))
    model[0].weight.grad = torch.tensor([[-3.0, 1.0]])
    model[0].bias.grad = torch.tensor([2.0])
    assert measure_gradient_flow(model) == {"0": (2.0, 3.0)}
    assert measure_gradient_flow(nn.Linear(1, 1)) == {}


def test_a_parameter_of_the_model_itself_is_its_own_layer() -> None:
    model = nn.Linear(1, 1, bias=False)
    model.weight.grad = torch.ones(1, 1)
    assert measure_gradient_flow(model) == {"weight": (1.0, 1.0)}


def test_gaps_of_sparse_gradients_count_as_zero() -> None:
    model = nn.Sequential(nn.Embedding(4, 1, sparse=True))
    model[0](torch.tensor([1, 1])).sum().backward()
    assert measure_gradient_flow(model) == {"0": (0.5, 2.0)}
    weights, gradients = sample_values(model)["0"]
    assert (len(weights), gradients.tolist()) == (4, [2.0])


def test_large_layers_are_sampled_at_even_distances() -> None:
    model = nn.Sequential(nn.Linear(2 * MAX_VALUES, 1, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(torch.arange(2 * MAX_VALUES)[None])
    model[0].weight.grad = torch.ones(1, 2 * MAX_VALUES)
    weights, gradients = sample_values(model)["0"]
    assert weights[:3].tolist() == [0.0, 2.0, 4.0]
    assert len(weights) == len(gradients) == MAX_VALUES
    model[0].weight.grad.zero_()
    assert gradients[0] == 1.0  # a copy
