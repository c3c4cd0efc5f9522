"""Release unused GPU memory."""

from __future__ import annotations

from typing import Any

import torch

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook


@HOOKS.register_module()
class EmptyCacheHook(Hook):
    """Calls `torch.cuda.empty_cache()` in training and validation, at the chosen sites."""

    def __init__(
        self, before_epoch: bool = False, after_epoch: bool = True, after_iter: bool = False
    ) -> None:
        self._before_epoch = before_epoch
        self._after_epoch = after_epoch
        self._after_iter = after_iter

    def after_iter(self, runner: Any) -> None:
        if self._after_iter:
            torch.cuda.empty_cache()

    def before_epoch(self, runner: Any) -> None:
        if self._before_epoch:
            torch.cuda.empty_cache()

    def after_epoch(self, runner: Any) -> None:
        if self._after_epoch:
            torch.cuda.empty_cache()
