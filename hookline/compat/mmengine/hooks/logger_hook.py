"""Log lines at an interval, and record the same numbers with the visualizer."""

from __future__ import annotations

import os
import os.path as osp
import shutil
from pathlib import Path
from typing import Any

from hookline.compat.mmengine.fileio import dump
from hookline.compat.mmengine.hooks.hook import Hook
from hookline.compat.mmengine.registry import HOOKS
from hookline.compat.mmengine.utils import scandir


@HOOKS.register_module()
class LoggerHook(Hook):
    """Logs at an interval and after every validation.

    Args:
        interval: The number of iterations between two lines.
        ignore_last: Do not log the iterations of an epoch after its last whole interval.
        interval_exp_name: The number of iterations between two lines with the experiment's name.
        out_dir: Log files are copied to a directory below it after the run.
        out_suffix: The endings of the files to copy.
        keep_local: Keep the copied files in the log directory too.
        log_metric_by_epoch: Record the results of a validation at the epoch, not the iteration.
    """

    priority = "BELOW_NORMAL"

    def __init__(
        self,
        interval: int = 10,
        ignore_last: bool = True,
        interval_exp_name: int = 1000,
        out_dir: str | Path | None = None,
        out_suffix: Any = (".json", ".log", ".py", "yaml"),
        keep_local: bool = True,
        file_client_args: Any = None,
        log_metric_by_epoch: bool = True,
        backend_args: Any = None,
    ) -> None:
        for name, value in (("interval", interval), ("interval_exp_name", interval_exp_name)):
            if not isinstance(value, int):
                raise TypeError(f"{name} must be an integer")
            if value <= 0:
                raise ValueError(f"{name} must be greater than 0")
        if file_client_args or backend_args:
            raise ValueError(
                "LoggerHook: only local files are covered (no file_client_args or backend_args)"
            )
        self.interval = interval
        self.ignore_last = ignore_last
        self.interval_exp_name = interval_exp_name
        self.out_dir = out_dir
        self.keep_local = keep_local
        self.out_suffix = (out_suffix,) if isinstance(out_suffix, str) else tuple(out_suffix)
        self.log_metric_by_epoch = log_metric_by_epoch
        self.json_log_path: str | None = None

    def before_run(self, runner: Any) -> None:
        if self.out_dir is not None:
            name = osp.basename(str(runner.work_dir).rstrip(osp.sep))
            self.out_dir = osp.join(self.out_dir, name)
            runner.logger.info(
                f"Text logs will be saved to {self.out_dir} after the training process."
            )
        self.json_log_path = f"{runner.timestamp}.json"

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
            runner.visualizer.add_scalars(tag, step=runner.iter + 1, file_path=self.json_log_path)

    def after_val_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self._log_evaluation(runner, batch_idx, "val")

    def after_test_iter(
        self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self._log_evaluation(runner, batch_idx, "test")

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        tag, text = runner.log_processor.get_log_after_epoch(
            runner, len(runner.val_dataloader), "val"
        )
        runner.logger.info(text)
        step = 0
        if runner.has_train_loop:
            step = runner.epoch if self.log_metric_by_epoch else runner.iter
        runner.visualizer.add_scalars(tag, step=step, file_path=self.json_log_path)

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        tag, text = runner.log_processor.get_log_after_epoch(
            runner, len(runner.test_dataloader), "test", with_non_scalar=True
        )
        runner.logger.info(text)
        dump(_as_plain(dict(tag)), osp.join(runner.log_dir, self.json_log_path or ""))

    def after_run(self, runner: Any) -> None:
        runner.visualizer.close()
        if self.out_dir is None:
            return
        for name in list(scandir(runner.log_dir, self.out_suffix, recursive=True)):
            target = Path(self.out_dir, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(osp.join(runner.log_dir, name), target)
            runner.logger.info(f"The file {name} has been copied to {target}.")
            if not self.keep_local:
                os.remove(osp.join(runner.log_dir, name))

    def _log_evaluation(self, runner: Any, batch_idx: int, mode: str) -> None:
        if self.every_n_inner_iters(batch_idx, self.interval):
            _, text = runner.log_processor.get_log_after_iter(runner, batch_idx, mode)
            runner.logger.info(text)


def _as_plain(value: Any) -> Any:
    """Return a result that JSON can hold; other values become None."""
    if isinstance(value, dict):
        return {key: _as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value if isinstance(value, (str, int, float, bool, type(None))) else None
