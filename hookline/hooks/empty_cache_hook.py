"""Release unused GPU memory."""

from __future__ import annotations

import torch

from hookline.engine import HOOKS, BaseHook, BaseRunner

ITERATION_SITES = ("after_train_iter", "after_val_iter", "after_test_iter")


@HOOKS.register()
class EmptyCacheHook(BaseHook):
    """Call `torch.cuda.empty_cache()` around epochs or after iterations.

    Without a GPU the call does nothing.

    Args:
        before_epoch: Call it before each epoch.
        after_epoch: Call it after each epoch.
        after_iter: Call it after each training, validation and test iteration.

    Example:
        ```yaml
        hooks:
          - {type: EmptyCacheHook, after_epoch: false, after_iter: true}
        ```
    """

    def __init__(
        self, before_epoch: bool = False, after_epoch: bool = True, after_iter: bool = False
    ) -> None:
        if not before_epoch:
            self.disable_sites("before_epoch")
        if not after_epoch:
            self.disable_sites("after_epoch")
        if not after_iter:
            self.disable_sites(*ITERATION_SITES)

    def before_epoch(self, runner: BaseRunner) -> None:
        torch.cuda.empty_cache()

    after_epoch = before_epoch
    after_train_iter = before_epoch
    after_val_iter = before_epoch
    after_test_iter = before_epoch
