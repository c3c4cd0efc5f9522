"""The same running statistics on all processes."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner


@HOOKS.register()
@dataclass
class SyncBuffersHook(BaseHook):
    """In a distributed run, make the model's floating point buffers their mean over all processes after each training epoch."""

    ranks = "collective"

    def after_train_epoch(self, runner: BaseRunner) -> None:
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            for buffer in runner.model.buffers():
                if buffer.is_floating_point():
                    torch.distributed.all_reduce(buffer)
                    buffer /= torch.distributed.get_world_size()
