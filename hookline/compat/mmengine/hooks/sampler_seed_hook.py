"""Set the epoch of samplers, so that each epoch has another order."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS
from hookline.compat.openmmlab import set_sampler_epoch


@HOOKS.register_module()
class DistSamplerSeedHook(Hook):
    """Calls `set_epoch` of the training loader's sampler before each epoch."""

    priority = "NORMAL"

    def before_train_epoch(self, runner: Any) -> None:
        set_sampler_epoch(runner.train_loop.dataloader, runner.epoch)
