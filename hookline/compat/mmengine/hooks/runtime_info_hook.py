"""Record the progress of a run in the message hub."""

from __future__ import annotations

import math
from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class RuntimeInfoHook(Hook):
    """Records epoch, iteration, their limits, learning rates, losses and metrics."""

    priority = "VERY_HIGH"

    def before_run(self, runner: Any) -> None:
        hub = runner.message_hub
        hub.update_info("cfg", runner.masked_config_text)
        for name in ("seed", "experiment_name", "mmengine_version"):
            hub.update_info(name, getattr(runner, name))

    def before_train(self, runner: Any) -> None:
        for name in ("epoch", "iter", "max_epochs", "max_iters"):
            runner.message_hub.update_info(name, getattr(runner, name))
        if hasattr(runner.train_dataloader.dataset, "metainfo"):
            runner.message_hub.update_info("dataset_meta", runner.train_dataloader.dataset.metainfo)

    def before_train_epoch(self, runner: Any) -> None:
        runner.message_hub.update_info("epoch", runner.epoch)

    def before_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None) -> None:
        runner.message_hub.update_info("iter", runner.iter)
        for name, rates in runner.optim_wrapper.get_lr().items():
            runner.message_hub.update_scalar(f"train/{name}", rates[0])

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        for key, value in (outputs or {}).items():
            runner.message_hub.update_scalar(f"train/{key}", value)

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        _record(runner, "val", metrics)

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        _record(runner, "test", metrics)


def _record(runner: Any, mode: str, metrics: dict[str, Any] | None) -> None:
    for key, value in (metrics or {}).items():
        is_array_of_one = hasattr(value, "shape") and math.prod(value.shape) == 1
        if isinstance(value, (int, float)) or is_array_of_one:
            runner.message_hub.update_scalar(f"{mode}/{key}", value)
        else:
            runner.message_hub.update_info(f"{mode}/{key}", value)
