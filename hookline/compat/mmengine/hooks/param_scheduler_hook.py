"""MMEngine's hook that steps the parameter schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class ParamSchedulerHook(Hook):
    """Steps schedulers after each epoch or iteration, and those with a metric after validation."""

    priority = "LOW"

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        for scheduler in _schedulers(runner):
            if not scheduler.by_epoch:
                scheduler.step()

    def after_train_epoch(self, runner: Any) -> None:
        for scheduler in _schedulers(runner):
            if scheduler.by_epoch:
                scheduler.step()

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        if metrics is None:
            return
        for scheduler in _schedulers(runner):
            if scheduler.by_epoch and getattr(scheduler, "need_val_args", False):
                scheduler.step(metrics)


def _schedulers(runner: Any) -> Iterator[Any]:
    """Yield the schedulers of one list, or of a dict of lists."""
    given = runner.param_schedulers
    if given is not None and not isinstance(given, (list, dict)):
        raise TypeError(
            "runner.param_schedulers should be list of ParamScheduler or a dict containing "
            f"list of them, but got {given}"
        )
    lists = given.values() if isinstance(given, dict) else [given or []]
    for schedulers in lists:
        for scheduler in schedulers:
            if hasattr(scheduler, "by_epoch"):
                yield scheduler
