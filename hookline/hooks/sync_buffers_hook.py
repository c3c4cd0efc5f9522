"""Synchronize buffers over ranks."""

from __future__ import annotations

from dataclasses import dataclass

from hookline.engine import HOOKS, BaseHook, BaseRunner
from hookline.optim.averaging import average_buffers


@HOOKS.register()
@dataclass
class SyncBuffersHook(BaseHook):
    """Average the floating-point buffers of the model over all ranks after each training epoch.

    With one process the hook does nothing.

    Example:
        ```yaml
        hooks:
          - {type: SyncBuffersHook}
        ```
    """

    ranks = "collective"

    def after_train_epoch(self, runner: BaseRunner) -> None:
        average_buffers(runner.model)
