"""Record the times of iterations and their data, and the estimated time to the end."""

from __future__ import annotations

import time
from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class IterTimerHook(Hook):
    """Records `time`, `data_time` and `eta` in the message hub."""

    priority = "NORMAL"

    def _before_epoch(self, runner: Any, mode: str = "train") -> None:
        self.t = time.time()
        if mode != "train":
            self._seconds_of_evaluation = 0.0

    def before_train(self, runner: Any) -> None:
        self._seconds = 0.0
        self._start_iter = runner.iter

    def _before_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, mode: str = "train"
    ) -> None:
        runner.message_hub.update_scalar(f"{mode}/data_time", time.time() - self.t)

    def _after_iter(
        self,
        runner: Any,
        batch_idx: int,
        data_batch: Any = None,
        outputs: Any = None,
        mode: str = "train",
    ) -> None:
        now = time.time()
        seconds = now - self.t
        self.t = now
        runner.message_hub.update_scalar(f"{mode}/time", seconds)
        if mode == "train":
            self._seconds += seconds
            mean = self._seconds / (runner.iter - self._start_iter + 1)
            remaining = runner.max_iters - runner.iter - 1
        else:
            loader = getattr(runner, f"{mode}_dataloader")
            self._seconds_of_evaluation += seconds
            mean = self._seconds_of_evaluation / (batch_idx + 1)
            remaining = len(loader) - batch_idx - 1
        runner.message_hub.update_info("eta", mean * remaining)
