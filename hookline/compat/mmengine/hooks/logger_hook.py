"""Log lines at an interval, and record the same numbers with the visualizer."""

from __future__ import annotations

from typing import Any

from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS


@HOOKS.register_module()
class LoggerHook(Hook):
    """Logs at an interval and after every validation.

    Args:
        interval: The number of iterations between two lines.
        ignore_last: Do not log the iterations of an epoch after its last whole interval.
        interval_exp_name: The number of iterations between two lines with the experiment's name.
        log_metric_by_epoch: Record the results of a validation at the epoch, not the iteration.
    """

    priority = "BELOW_NORMAL"

    def __init__(
        self,
        interval: int = 10,
        ignore_last: bool = True,
        interval_exp_name: int = 1000,
        log_metric_by_epoch: bool = True,
    ) -> None:
        for name, value in (("interval", interval), ("interval_exp_name", interval_exp_name)):
            if not isinstance(value, int) or value <= 0:
                raise ValueError(f"{name} must be a whole number above 0, got {value}")
        self.interval = interval
        self.ignore_last = ignore_last
        self.interval_exp_name = interval_exp_name
        self.log_metric_by_epoch = log_metric_by_epoch

    def after_train_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        loader = runner.train_dataloader
        ends_epoch = self.end_of_epoch(loader, batch_idx)
        if ends_epoch or self.every_n_train_iters(runner, self.interval_exp_name):
            runner.logger.info(f"Exp name: {runner.experiment_name}")
        logs_last = not self.ignore_last or len(loader) <= self.interval
        if self.every_n_inner_iters(batch_idx, self.interval) or (ends_epoch and logs_last):
            tag, text = runner.log_processor.get_log_after_iter(runner, batch_idx, "train")
            runner.logger.info(text)
            runner.visualizer.add_scalars(tag, step=runner.iter + 1)

    def after_val_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self._log_evaluation(runner, batch_idx, "val")

    def after_test_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self._log_evaluation(runner, batch_idx, "test")

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        tag = self._log_metrics(runner, "val")
        step = 0
        if runner.has_train_loop:
            step = runner.epoch if self.log_metric_by_epoch else runner.iter
        runner.visualizer.add_scalars(tag, step=step)

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        self._log_metrics(runner, "test")

    def _log_evaluation(self, runner: Any, batch_idx: int, mode: str) -> None:
        if self.every_n_inner_iters(batch_idx, self.interval):
            _, text = runner.log_processor.get_log_after_iter(runner, batch_idx, mode)
            runner.logger.info(text)

    def _log_metrics(self, runner: Any, mode: str) -> dict[str, Any]:
        tag, text = runner.log_processor.get_log_after_epoch(runner, mode)
        runner.logger.info(text)
        return tag  # type: ignore[no-any-return]
