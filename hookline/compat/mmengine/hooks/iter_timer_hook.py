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

    def __init__(self) -> None:
        self.time_sec_tot = 0.0
        self.time_sec_test_val = 0.0
        self.start_iter = 0

    def before_train(self, runner: Any) -> None:
        self.start_iter = runner.iter

    def _before_epoch(self, runner: Any, mode: str = "train") -> None:
        self.t = time.time()

    def _after_epoch(self, runner: Any, mode: str = "train") -> None:
        self.time_sec_test_val = 0

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
            self.time_sec_tot += seconds
            done = runner.iter - self.start_iter + 1
            remaining = runner.max_iters - runner.iter - 1
            eta = self.time_sec_tot / done * remaining
        else:
            loader = runner.val_dataloader if mode == "val" else runner.test_dataloader
            self.time_sec_test_val += seconds
            eta = self.time_sec_test_val / (batch_idx + 1) * (len(loader) - batch_idx - 1)
        runner.message_hub.update_info("eta", eta)
