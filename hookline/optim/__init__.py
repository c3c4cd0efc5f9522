"""Registries of optimizers, learning rate schedulers and losses by name."""

from __future__ import annotations

import torch
from torch.optim.lr_scheduler import LRScheduler

from hookline.optim.losses import LOSSES
from hookline.registry import Registry

__all__ = ["LOSSES", "OPTIMIZERS", "SCHEDULERS"]

OPTIMIZERS: Registry[torch.optim.Optimizer] = Registry("optimizer", torch.optim.Optimizer)
SCHEDULERS: Registry[LRScheduler] = Registry("scheduler", LRScheduler)


def _register_all(registry: Registry[object], module: object, base: type) -> None:
    for name, value in vars(module).items():
        if not isinstance(value, type) or name.startswith("_"):
            continue
        if issubclass(value, base) and value is not base:
            registry.register(name)(value)


_register_all(OPTIMIZERS, torch.optim, torch.optim.Optimizer)  # type: ignore[arg-type]
_register_all(SCHEDULERS, torch.optim.lr_scheduler, LRScheduler)  # type: ignore[arg-type]
