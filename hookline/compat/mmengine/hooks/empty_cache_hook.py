"""Release unused GPU memory."""

from __future__ import annotations

from typing import Any

import torch

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class EmptyCacheHook(Hook):
    """Calls `torch.cuda.empty_cache()` at the chosen stages."""

    priority = "NORMAL"

    def __init__(
        self, before_epoch: bool = False, after_epoch: bool = True, after_iter: bool = False
    ) -> None:
        self._do_before_epoch = before_epoch
        self._do_after_epoch = after_epoch
        self._do_after_iter = after_iter

    def _after_iter(
        self,
        runner: Any,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Any = None,
        mode: str = "train",
    ) -> None:
        if self._do_after_iter:
            torch.cuda.empty_cache()

    def _before_epoch(self, runner: Any, mode: str = "train") -> None:
        if self._do_before_epoch:
            torch.cuda.empty_cache()

    def _after_epoch(self, runner: Any, mode: str = "train") -> None:
        if self._do_after_epoch:
            torch.cuda.empty_cache()
