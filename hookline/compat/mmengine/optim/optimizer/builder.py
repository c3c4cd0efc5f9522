"""Optimizers and their wrappers from a config."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import nn

from hookline.compat.mmengine.registry import OPTIM_WRAPPER_CONSTRUCTORS, OPTIMIZERS

for _name, _class in list(vars(torch.optim).items()):
    if isinstance(_class, type) and issubclass(_class, torch.optim.Optimizer) and _name != "Optimizer":
        OPTIMIZERS.register_module(name="TorchAdafactor" if _name == "Adafactor" else _name, module=_class)


def build_optim_wrapper(model: nn.Module, cfg: Any) -> Any:
    """`dict(type='OptimWrapper', optimizer=dict(type='SGD', lr=0.1), paramwise_cfg=…)` for a model."""
    options = copy.deepcopy(dict(cfg))
    kind = options.pop("constructor", "DefaultOptimWrapperConstructor")
    paramwise = options.pop("paramwise_cfg", None)
    constructor = OPTIM_WRAPPER_CONSTRUCTORS.build({"type": kind, "optim_wrapper_cfg": options, "paramwise_cfg": paramwise})
    return constructor(model)
