"""Shuffle the data of a distributed run differently in each epoch."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook
from hookline.compat.openmmlab import set_sampler_epoch


@HOOKS.register_module()
class DistSamplerSeedHook(Hook):
    """Sets the epoch of the loader's sampler, or of the sampler of its batch sampler."""

    def before_epoch(self, runner: Any) -> None:
        set_sampler_epoch(runner.data_loader, runner.epoch)
