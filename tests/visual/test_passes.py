"""Additional passes do not change a model, its gradients or random numbers."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch import nn

from hookline.visual.passes import undisturbed
from tests.visual.picture_parts import conv_model


class Stateful(nn.Module):
    """Counts its forward passes, and draws random numbers in any mode."""

    def __init__(self):
        super().__init__()
        self.body = conv_model()
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, inputs):
        self.passes += 1
        random.random(), np.random.rand()
        return self.body(inputs + torch.rand_like(inputs))


def test_modes_buffers_gradients_and_random_numbers_are_restored():
    model = Stateful().train()
    model.body[1].eval()
    model(torch.rand(2, 1, 8, 8)).sum().backward()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    values = {name: gradient.clone() for name, gradient in gradients.items()}
    modes = [module.training for module in model.modules()]
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    expected = random.random(), np.random.rand(), torch.rand(1)
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    with torch.no_grad(), undisturbed(model) as evaluated:
        assert not any(module.training for module in evaluated.modules())
        evaluated(torch.rand(2, 1, 8, 8)).sum().backward()
    assert (random.random(), np.random.rand(), torch.rand(1)) == expected
    assert [module.training for module in model.modules()] == modes
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for name, parameter in model.named_parameters():
        assert parameter.grad is gradients[name]
        assert torch.equal(parameter.grad, values[name])


def test_everything_is_restored_after_an_error():
    model = conv_model().train()
    with pytest.raises(RuntimeError, match="shape|size"), undisturbed(model):
        model(torch.rand(1, 1, 3, 3))
    assert model.training
    assert torch.is_grad_enabled()
