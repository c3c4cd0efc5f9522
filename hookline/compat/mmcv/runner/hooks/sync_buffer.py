"""The same buffers on all processes."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmcv.runner.dist_utils import allreduce_params
from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook


@HOOKS.register_module()
class SyncBuffersHook(Hook):
    """After each epoch make the model's buffers (running means of BN) their mean over all processes."""

    ranks = "collective"

    def __init__(self, distributed: bool = True) -> None:
        self.distributed = distributed

    def after_epoch(self, runner: Any) -> None:
        if self.distributed:
            allreduce_params(runner.model.buffers())
