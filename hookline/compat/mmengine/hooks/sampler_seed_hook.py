"""Set the epoch of samplers, so that each epoch has another order."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class DistSamplerSeedHook(Hook):
    """Calls `set_epoch` of the training loader's sampler before each epoch."""

    priority = "NORMAL"

    def before_train_epoch(self, runner: Any) -> None:
        loader = runner.train_loop.dataloader
        batch_sampler = getattr(loader, "batch_sampler", None)
        for owner in (loader, batch_sampler):
            sampler: Any = getattr(owner, "sampler", None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(runner.epoch)
                return
