"""Shuffle the data of a distributed run differently in each epoch."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook


@HOOKS.register_module()
class DistSamplerSeedHook(Hook):
    """Sets the epoch of the loader's sampler, or of the sampler of its batch sampler."""

    def before_epoch(self, runner: Any) -> None:
        loader = runner.data_loader
        batch_sampler = getattr(loader, "batch_sampler", None)
        for owner in (loader, batch_sampler):
            sampler: Any = getattr(owner, "sampler", None)
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(runner.epoch)
                return
