"""MMEngine's hook that steps the parameter schedulers."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class ParamSchedulerHook(Hook):
    """Steps each scheduler after every epoch or every iteration."""

    priority = "LOW"

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        _step(runner.param_schedulers, by_epoch=False)

    def after_train_epoch(self, runner: Any) -> None:
        _step(runner.param_schedulers, by_epoch=True)


def _step(schedulers: Any, by_epoch: bool) -> None:
    for scheduler in schedulers or ():
        if scheduler.by_epoch == by_epoch:
            scheduler.step()
