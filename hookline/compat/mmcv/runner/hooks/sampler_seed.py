"""Another order in each epoch of a distributed run."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook


@HOOKS.register_module()
class DistSamplerSeedHook(Hook):
    """Tell the loader's sampler, or that of its batch sampler, which epoch begins."""

    def before_epoch(self, runner: Any) -> None:
        loader, sampler = runner.data_loader, None  # type: Any, Any
        for sampler in (getattr(loader, "sampler", None), getattr(getattr(loader, "batch_sampler", None), "sampler", None)):
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(runner.epoch)
                return
