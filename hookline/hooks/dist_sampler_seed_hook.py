"""Another order in each epoch, also where a sampler must be told so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hookline.engine import HOOKS, BaseHook, BaseRunner


@HOOKS.register()
@dataclass
class DistSamplerSeedHook(BaseHook):
    """Tell the training sampler which epoch begins, so that a distributed one shuffles anew; also one inside a batch sampler.

    The runner itself tells the loader and its sampler; this hook is for samplers that lie deeper, and for configs that name it.
    """

    def before_train_epoch(self, runner: BaseRunner) -> None:
        loader: Any = runner.train_loader
        batch_sampler = getattr(loader, "batch_sampler", None)
        sampler: Any
        for sampler in (getattr(loader, "sampler", None), batch_sampler, getattr(batch_sampler, "sampler", None)):
            if hasattr(sampler, "set_epoch"):
                sampler.set_epoch(runner.epoch)
