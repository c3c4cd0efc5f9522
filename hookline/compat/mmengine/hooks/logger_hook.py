"""Log lines at intervals, and the same numbers for the visualizer."""

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
    """Log every `interval` iterations and after every validation; `out_dir` gets a copy of the logs at the end."""

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
            raise ValueError("LoggerHook: only local files are covered (no file_client_args or backend_args)")
        self.interval, self.ignore_last, self.interval_exp_name = interval, ignore_last, interval_exp_name
        self.out_dir, self.keep_local = out_dir, keep_local
        self.out_suffix = (out_suffix,) if isinstance(out_suffix, str) else tuple(out_suffix)
        self.log_metric_by_epoch = log_metric_by_epoch
        self.json_log_path: str | None = None

    def before_run(self, runner: Any) -> None:
        if self.out_dir is not None:
            self.out_dir = osp.join(self.out_dir, osp.basename(str(runner.work_dir).rstrip(osp.sep)))
            runner.logger.info(f"Text logs will be saved to {self.out_dir} after the training process.")
        self.json_log_path = f"{runner.timestamp}.json"

    def after_train_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:  # type: ignore[override]
        loader = runner.train_dataloader
        at_end = self.end_of_epoch(loader, batch_idx)
        if at_end or self.every_n_train_iters(runner, self.interval_exp_name):
            runner.logger.info(f"Exp name: {runner.experiment_name}")
        short = not self.ignore_last or len(loader) <= self.interval
        if self.every_n_inner_iters(batch_idx, self.interval) or (at_end and short):
            tag, text = runner.log_processor.get_log_after_iter(runner, batch_idx, "train")
            runner.logger.info(text)
            runner.visualizer.add_scalars(tag, step=runner.iter + 1, file_path=self.json_log_path)

    def after_val_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:  # type: ignore[override]
        self._log_evaluation(runner, batch_idx, "val")

    def after_test_iter(self, runner: Any, batch_idx: int, data_batch: Any = None, outputs: Any = None) -> None:  # type: ignore[override]
        self._log_evaluation(runner, batch_idx, "test")

    def after_val_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        tag, text = runner.log_processor.get_log_after_epoch(runner, len(runner.val_dataloader), "val")
        runner.logger.info(text)
        step = 0 if not runner.has_train_loop else runner.epoch if self.log_metric_by_epoch else runner.iter
        runner.visualizer.add_scalars(tag, step=step, file_path=self.json_log_path)

    def after_test_epoch(self, runner: Any, metrics: dict[str, float] | None = None) -> None:
        tag, text = runner.log_processor.get_log_after_epoch(runner, len(runner.test_dataloader), "test", with_non_scalar=True)
        runner.logger.info(text)
        dump(_as_plain(dict(tag)), osp.join(runner.log_dir, self.json_log_path or ""))

    def after_run(self, runner: Any) -> None:
        runner.visualizer.close()
        for name in list(scandir(runner.log_dir, self.out_suffix, recursive=True)) if self.out_dir is not None else ():
            target = Path(str(self.out_dir), name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(osp.join(runner.log_dir, name), target)
            runner.logger.info(f"The file {name} has been copied to {target}.")
            if not self.keep_local:
                os.remove(osp.join(runner.log_dir, name))

    def _log_evaluation(self, runner: Any, batch_idx: int, mode: str) -> None:
        if self.every_n_inner_iters(batch_idx, self.interval):
            runner.logger.info(runner.log_processor.get_log_after_iter(runner, batch_idx, mode)[1])


def _as_plain(value: Any) -> Any:
    """A result as JSON can hold it; what it cannot is left out."""
    if isinstance(value, dict):
        return {key: _as_plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return value.tolist()
    return value if isinstance(value, (str, int, float, bool, type(None))) else None
