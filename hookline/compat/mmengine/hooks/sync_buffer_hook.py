"""Average buffers over all ranks."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.dist import all_reduce_params, is_distributed
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class SyncBuffersHook(Hook):
    """Averages the model's buffers after each training epoch, or before a mere validation."""

    priority = "NORMAL"

    def __init__(self) -> None:
        self.distributed = is_distributed()
        self.called_in_train = False

    def before_val_epoch(self, runner: Any) -> None:
        if self.distributed and not self.called_in_train:
            all_reduce_params(runner.model.buffers(), op="mean")
        self.called_in_train = False

    def after_train_epoch(self, runner: Any) -> None:
        if self.distributed:
            all_reduce_params(runner.model.buffers(), op="mean")
            self.called_in_train = True
