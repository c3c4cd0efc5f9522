"""Record the progress of a run in the message hub."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class RuntimeInfoHook(Hook):
    """Records epoch, iteration, their limits, learning rates, losses and metrics."""

    priority = "VERY_HIGH"
    last_loop_stage: str | None = None

    def before_run(self, runner: Any) -> None:
        info = {
            "cfg": runner.masked_config_text,
            "seed": runner.seed,
            "experiment_name": runner.experiment_name,
        }
        runner.message_hub.update_info_dict({**info, "mmengine_version": runner.mmengine_version})
        self.last_loop_stage = None

    def before_train(self, runner: Any) -> None:
        runner.message_hub.update_info("loop_stage", "train")
        for name in ("epoch", "iter", "max_epochs", "max_iters"):
            runner.message_hub.update_info(name, getattr(runner, name))
        if hasattr(runner.train_dataloader.dataset, "metainfo"):
            runner.message_hub.update_info("dataset_meta", runner.train_dataloader.dataset.metainfo)

    def after_train(self, runner: Any) -> None:
        runner.message_hub.pop_info("loop_stage")

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

    def before_val(self, runner: Any) -> None:
        self.last_loop_stage = runner.message_hub.get_info("loop_stage")
        runner.message_hub.update_info("loop_stage", "val")

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        _record(runner, "val", metrics)

    def after_val(self, runner: Any) -> None:
        if self.last_loop_stage == "train":
            runner.message_hub.update_info("loop_stage", "train")
        else:
            runner.message_hub.pop_info("loop_stage")
        self.last_loop_stage = None

    def before_test(self, runner: Any) -> None:
        runner.message_hub.update_info("loop_stage", "test")

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        _record(runner, "test", metrics)

    def after_test(self, runner: Any) -> None:
        runner.message_hub.pop_info("loop_stage")


def _record(runner: Any, mode: str, metrics: dict[str, Any] | None) -> None:
    for key, value in (metrics or {}).items():
        if _is_scalar(value):
            runner.message_hub.update_scalar(f"{mode}/{key}", value)
        else:
            runner.message_hub.update_info(f"{mode}/{key}", value)


def _is_scalar(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.size == 1
    if isinstance(value, torch.Tensor):
        return value.numel() == 1
    return isinstance(value, (int, float, np.number))
