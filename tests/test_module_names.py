"""Names of modules and parameters, also of modules that recompute their activations."""

from __future__ import annotations

import pytest
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

from hookline.module_names import named_modules, named_parameters


@pytest.mark.parametrize("wrapped", [[], ["0"], ["1"], ["1", "1.0"]])
def test_names_are_those_of_the_model_without_wrappers(wrapped: list[str]) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    modules = dict(model.named_modules())
    parameters = dict(model.named_parameters())
    for name in reversed(wrapped):
        model.set_submodule(name, checkpoint_wrapper(modules[name]))
    del modules[""]
    assert named_modules(model) == modules
    assert dict(named_parameters(model)) == parameters
    assert list(parameters) == list(model.state_dict())
