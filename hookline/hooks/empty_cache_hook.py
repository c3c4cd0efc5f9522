"""Giving unused GPU memory back."""

from __future__ import annotations

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner

ITERATIONS = ("after_train_iter", "after_val_iter", "after_test_iter")


@HOOKS.register()
class EmptyCacheHook(BaseHook):
    """Call `torch.cuda.empty_cache()` before or after epochs, or after iterations (of training, validation and test)."""

    def __init__(self, before_epoch: bool = False, after_epoch: bool = True, after_iter: bool = False) -> None:
        if not before_epoch:
            self.leave_alone("before_epoch")
        if not after_epoch:
            self.leave_alone("after_epoch")
        if not after_iter:
            self.leave_alone(*ITERATIONS)

    def before_epoch(self, runner: BaseRunner) -> None:
        torch.cuda.empty_cache()  # does nothing where there is no GPU

    after_epoch = before_epoch
    after_train_iter = before_epoch
    after_val_iter = before_epoch
    after_test_iter = before_epoch
