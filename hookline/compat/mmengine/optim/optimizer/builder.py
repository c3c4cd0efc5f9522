"""Build optimizers and their wrappers from configs."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIMIZERS

for _name, _class in list(vars(torch.optim).items()):
    if not isinstance(_class, type) or _name == "Optimizer":
        continue
    if issubclass(_class, torch.optim.Optimizer):
        # MMEngine's `Adafactor` is that of transformers.
        _registered_as = "TorchAdafactor" if _name == "Adafactor" else _name
        OPTIMIZERS.register_module(name=_registered_as, module=_class)


def build_optim_wrapper(model: nn.Module, cfg: Any) -> Any:
    """Build an optimizer wrapper for a model.

    Args:
        model: The model.
        cfg: A config such as `dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1))`, with
            an optional `paramwise_cfg` and `constructor`.
    """
    options = copy.deepcopy(dict(cfg))
    kind = options.pop("constructor", "DefaultOptimWrapperConstructor")
    paramwise = options.pop("paramwise_cfg", None)
    constructor = OPTIM_WRAPPER_CONSTRUCTORS.build(
        {"type": kind, "optim_wrapper_cfg": options, "paramwise_cfg": paramwise}
    )
    return constructor(model)
