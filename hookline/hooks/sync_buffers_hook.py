"""The same running statistics on all processes."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.optim.averaging import average_buffers


@HOOKS.register()
@dataclass
class SyncBuffersHook(BaseHook):
    """In a distributed run, make the model's floating point buffers their mean over all processes after each training epoch."""

    ranks = "collective"

    def after_train_epoch(self, runner: BaseRunner) -> None:
        average_buffers(runner.model)
