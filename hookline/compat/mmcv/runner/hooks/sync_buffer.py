"""Average buffers over all ranks."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmcv.runner.dist_utils import allreduce_params
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook


@HOOKS.register_module()
class SyncBuffersHook(Hook):
    """Averages the model's buffers, such as running means of batch norm, after each epoch."""

    reads_checkpoints = False
    ranks = "collective"

    def __init__(self, distributed: bool = True) -> None:
        self.distributed = distributed

    def after_epoch(self, runner: Any) -> None:
        if self.distributed:
            allreduce_params(runner.model.buffers())
