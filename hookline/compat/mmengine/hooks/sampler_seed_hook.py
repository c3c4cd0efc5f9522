"""Tells samplers which epoch it is, so that every one has its own order."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class DistSamplerSeedHook(Hook):
    """Call `set_epoch` of the training loader's sampler before each epoch."""

    priority = "NORMAL"

    def before_train_epoch(self, runner: Any) -> None:
        loader = runner.train_loop.dataloader
        sampler: Any
        for sampler in (getattr(loader, "sampler", None), getattr(getattr(loader, "batch_sampler", None), "sampler", None)):
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(runner.epoch)
                return
