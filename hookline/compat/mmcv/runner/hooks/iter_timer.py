"""How long iterations take."""

from __future__ import annotations

import time
from typing import Any

from hookline.compat.mmcv.runner.hooks.hook import HOOKS, Hook


@HOOKS.register_module()
class IterTimerHook(Hook):
    """Record `data_time` (waiting for the batch) and `time` of each iteration in the log buffer."""

    def before_epoch(self, runner: Any) -> None:
        self.t = time.time()

    def before_iter(self, runner: Any) -> None:
        runner.log_buffer.update({"data_time": time.time() - self.t})

    def after_iter(self, runner: Any) -> None:
        runner.log_buffer.update({"time": time.time() - self.t})
        self.t = time.time()
