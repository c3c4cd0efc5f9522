"""The base class of loggers: which values are logged, and when."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import torch

from hookline.compat.mmcv.runner.hooks.hook import Hook


class LoggerHook(Hook):
    """Averages and logs the log buffer at an interval, and logs the results of evaluations.

    Args:
        interval: The number of iterations between two logs.
        ignore_last: Do not log the iterations of an epoch after its last whole interval.
        reset_flag: Clear the output of the buffer after logging; set for the last logger.
        by_epoch: Count iterations within the epoch.
    """

    def __init__(
        self,
        interval: int = 10,
        ignore_last: bool = True,
        reset_flag: bool = False,
        by_epoch: bool = True,
    ) -> None:
        self.interval = interval
        self.ignore_last = ignore_last
        self.reset_flag = reset_flag
        self.by_epoch = by_epoch

    def log(self, runner: Any) -> None:
        raise NotImplementedError(f"{type(self).__name__} has no 'log'")

    @staticmethod
    def is_scalar(val: Any, include_np: bool = True, include_torch: bool = True) -> bool:
        if isinstance(val, numbers.Number):
            return True
        if include_np and isinstance(val, np.ndarray):
            return val.ndim == 0
        return include_torch and isinstance(val, torch.Tensor) and val.numel() == 1

    def get_mode(self, runner: Any) -> str:
        """Return `train` or `val`; values without a `time` do not come from training."""
        if runner.mode not in ("train", "val"):
            raise ValueError(f"runner mode should be 'train' or 'val', but got {runner.mode}")
        is_training = runner.mode == "train" and "time" in runner.log_buffer.output
        return "train" if is_training else "val"

    def get_epoch(self, runner: Any) -> int:
        """Return the epoch from 1. A validation of the workflow runs after it is counted."""
        return int(runner.epoch + 1 if runner.mode == "train" else runner.epoch)

    def get_iter(self, runner: Any, inner_iter: bool = False) -> int:
        """Return the iteration from 1."""
        if self.by_epoch and inner_iter:
            return int(runner.inner_iter + 1)
        return int(runner.iter + 1)

    def get_lr_tags(self, runner: Any) -> dict[str, float]:
        return _first_of_each("learning_rate", runner.current_lr())

    def get_momentum_tags(self, runner: Any) -> dict[str, float]:
        return _first_of_each("momentum", runner.current_momentum())

    def get_loggable_tags(
        self,
        runner: Any,
        allow_scalar: bool = True,
        allow_text: bool = False,
        add_mode: bool = True,
        tags_to_skip: tuple[str, ...] = ("time", "data_time"),
    ) -> dict[str, Any]:
        """Return the output of the buffer as `train/loss`, the learning rate and the momentum."""
        tags: dict[str, Any] = {}
        for name, value in runner.log_buffer.output.items():
            if name in tags_to_skip:
                continue
            if self.is_scalar(value) and not allow_scalar:
                continue
            if isinstance(value, str) and not allow_text:
                continue
            tag = f"{self.get_mode(runner)}/{name}" if add_mode else name
            tags[tag] = value
        return {**tags, **self.get_lr_tags(runner), **self.get_momentum_tags(runner)}

    def before_run(self, runner: Any) -> None:
        for hook in runner.hooks[::-1]:
            if isinstance(hook, LoggerHook):
                hook.reset_flag = True
                break

    def before_epoch(self, runner: Any) -> None:
        runner.log_buffer.clear()

    def after_train_iter(self, runner: Any) -> None:
        if self.by_epoch:
            is_due = self.every_n_inner_iters(runner, self.interval)
        else:
            is_due = self.every_n_iters(runner, self.interval)
        if is_due or (not self.ignore_last and self.end_of_epoch(runner)):
            runner.log_buffer.average(self.interval)
        self._log_if_ready(runner)

    def after_train_epoch(self, runner: Any) -> None:
        self._log_if_ready(runner)

    def after_val_epoch(self, runner: Any) -> None:
        runner.log_buffer.average()
        self._log_if_ready(runner)

    def _log_if_ready(self, runner: Any) -> None:
        if runner.log_buffer.ready:
            self.log(runner)
            if self.reset_flag:
                runner.log_buffer.clear_output()


def _first_of_each(tag: str, values: Any) -> dict[str, float]:
    if isinstance(values, dict):
        return {f"{tag}/{name}": value[0] for name, value in values.items()}
    return {tag: values[0]} if values else {}
