"""Steps the parameter schedulers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class ParamSchedulerHook(Hook):
    """Each scheduler after its epoch or iteration; those that watch a metric after validation as well."""

    priority = "LOW"

    def after_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:  # type: ignore[override]
        for scheduler in _schedulers(runner):
            if not scheduler.by_epoch:
                scheduler.step()

    def after_train_epoch(self, runner: Any) -> None:
        for scheduler in _schedulers(runner):
            if scheduler.by_epoch:
                scheduler.step()

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        for scheduler in _schedulers(runner) if metrics is not None else ():
            if scheduler.by_epoch and getattr(scheduler, "need_val_args", False):
                scheduler.step(metrics)


def _schedulers(runner: Any) -> Iterator[Any]:
    given = runner.param_schedulers
    if given is not None and not isinstance(given, (list, dict)):
        raise TypeError(f"runner.param_schedulers should be list of ParamScheduler or a dict containing list of them, but got {given}")
    for part in given.values() if isinstance(given, dict) else [given or []]:
        yield from (each for each in part if hasattr(each, "by_epoch"))
