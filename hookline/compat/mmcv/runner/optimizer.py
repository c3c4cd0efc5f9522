"""Optimizers from configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hookline.compat.mmcv.parallel import is_module_wrapper
from hookline.compat.mmcv.utils.registry import Registry, build_from_cfg

OPTIMIZERS = Registry("optimizer")
for _name, _value in vars(torch.optim).items():
    if isinstance(_value, type) and issubclass(_value, torch.optim.Optimizer) and _value is not torch.optim.Optimizer:
        OPTIMIZERS.register_module(name=_name, module=_value)


def build_optimizer(model: torch.nn.Module, cfg: Mapping[str, Any]) -> Any:
    """An optimizer of all parameters from `{'type': 'SGD', 'lr': …}`; rules by parameter are not covered."""
    config = dict(cfg)
    for key in ("constructor", "paramwise_cfg"):
        if config.pop(key, None) is not None:
            raise ValueError(f"build_optimizer: {key!r} is not covered: give torch's optimizer parameter groups of your own instead")
    model = model.module if is_module_wrapper(model) else model  # type: ignore[assignment]
    return build_from_cfg(config, OPTIMIZERS, {"params": list(model.parameters())})
