"""Record the time of iterations."""

from __future__ import annotations

import time
from typing import Any

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook


@HOOKS.register_module()
class IterTimerHook(Hook):
    """Records `data_time`, the time until the batch is loaded, and `time` of each iteration."""

    reads_checkpoints = False

    def before_epoch(self, runner: Any) -> None:
        self.t = time.time()

    def before_iter(self, runner: Any) -> None:
        runner.log_buffer.update({"data_time": time.time() - self.t})

    def after_iter(self, runner: Any) -> None:
        runner.log_buffer.update({"time": time.time() - self.t})
        self.t = time.time()
