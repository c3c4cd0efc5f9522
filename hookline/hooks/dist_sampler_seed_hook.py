"""Pass the epoch number to samplers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner


@HOOKS.register()
@dataclass
class DistSamplerSeedHook(BaseHook):
    """Pass the epoch number to the training sampler, so that a distributed sampler reshuffles.

    The runner already does so for the loader and its sampler. This hook also reaches the sampler
    inside a batch sampler.

    Example:
        ```yaml
        hooks:
          - {type: DistSamplerSeedHook}
        ```
    """

    def before_train_epoch(self, runner: BaseRunner) -> None:
        loader: Any = runner.train_loader
        batch_sampler = getattr(loader, "batch_sampler", None)
        sampler: Any
        for sampler in (
            getattr(loader, "sampler", None),
            batch_sampler,
            getattr(batch_sampler, "sampler", None),
        ):
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(runner.epoch)
