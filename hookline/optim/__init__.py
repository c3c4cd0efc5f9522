"""Optimizers, learning rate schedulers and losses by name."""

from __future__ import annotations

import torch
from torch.optim.lr_scheduler import LRScheduler

from hookline.optim.losses import LOSSES
from hookline.registry import Registry

__all__ = ["LOSSES", "OPTIMIZERS", "SCHEDULERS"]

OPTIMIZERS: Registry[torch.optim.Optimizer] = Registry("optimizer", torch.optim.Optimizer)
SCHEDULERS: Registry[LRScheduler] = Registry("scheduler", LRScheduler)


def _register_all(registry: Registry[object], module: object, base: type) -> None:
    for name, cls in vars(module).items():
        if isinstance(cls, type) and issubclass(cls, base) and cls is not base and not name.startswith("_"):
            registry.register(name)(cls)


_register_all(OPTIMIZERS, torch.optim, torch.optim.Optimizer)  # type: ignore[arg-type]
_register_all(SCHEDULERS, torch.optim.lr_scheduler, LRScheduler)  # type: ignore[arg-type]
