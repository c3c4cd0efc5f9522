"""Giving cached GPU memory back."""

from __future__ import annotations

from typing import Any

import torch

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class EmptyCacheHook(Hook):
    """Call `torch.cuda.empty_cache()` before or after epochs, or after iterations."""

    priority = "NORMAL"

    def __init__(self, before_epoch: bool = False, after_epoch: bool = True, after_iter: bool = False) -> None:
        self._do_before_epoch, self._do_after_epoch, self._do_after_iter = before_epoch, after_epoch, after_iter

    def _after_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None, mode: str = "train") -> None:
        _empty(self._do_after_iter)

    def _before_epoch(self, runner: Any, mode: str = "train") -> None:
        _empty(self._do_before_epoch)

    def _after_epoch(self, runner: Any, mode: str = "train") -> None:
        _empty(self._do_after_epoch)


def _empty(wanted: bool) -> None:
    if wanted and torch.cuda.is_available():
        torch.cuda.empty_cache()
