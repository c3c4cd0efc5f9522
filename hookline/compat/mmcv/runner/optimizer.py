"""Build optimizers from configs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hookline.compat.mmcv.runner.model_wrapper import unwrap
from hookline.compat.mmcv.utils.registry import Registry, build_from_cfg

OPTIMIZERS = Registry("optimizer")
for _name, _value in vars(torch.optim).items():
    if not isinstance(_value, type) or _value is torch.optim.Optimizer:
        continue
    if issubclass(_value, torch.optim.Optimizer):
        OPTIMIZERS.register_module(name=_name, module=_value)


def build_optimizer(model: torch.nn.Module, cfg: Mapping[str, Any]) -> Any:
    """Build an optimizer of all parameters from `{'type': 'SGD', 'lr': …}`.

    Rules for single parameters are not covered.
    """
    config = dict(cfg)
    for key in ("constructor", "paramwise_cfg"):
        if config.pop(key, None) is not None:
            raise ValueError(
                f"build_optimizer: {key!r} is not covered; pass parameter groups to torch's "
                "optimizer instead"
            )
    parameters = list(unwrap(model).parameters())
    return build_from_cfg(config, OPTIMIZERS, {"params": parameters})
