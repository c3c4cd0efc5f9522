"""Build optimizers and their wrappers from configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIM_WRAPPERS, OPTIMIZERS

for _name, _class in list(vars(torch.optim).items()):
    if isinstance(_class, type) and issubclass(_class, torch.optim.Optimizer):
        OPTIMIZERS.register_module(name=_name, module=_class)


def build_optim_wrapper(model: nn.Module, cfg: Mapping[str, Any]) -> Any:
    """Build an optimizer wrapper for a model.

    Args:
        model: The model.
        cfg: A config such as `dict(optimizer=dict(type='SGD', lr=0.1), clip_grad=…)`. With a
            `constructor`, an instance of that class is called with the model.
    """
    options = dict(cfg)
    paramwise = options.pop("paramwise_cfg", None)
    constructor = options.pop("constructor", None)
    if constructor is not None:
        given = {"optim_wrapper_cfg": options, "paramwise_cfg": paramwise}
        return OPTIM_WRAPPER_CONSTRUCTORS.build({"type": constructor, **given})(model)
    if paramwise:
        raise NotImplementedError(f"paramwise_cfg is not covered; {ADVICE}")
    optimizer = options.pop("optimizer")
    if not isinstance(optimizer, torch.optim.Optimizer):
        optimizer = OPTIMIZERS.build({"params": list(model.parameters()), **optimizer})
    return OPTIM_WRAPPERS.build({"type": "OptimWrapper", "optimizer": optimizer, **options})
