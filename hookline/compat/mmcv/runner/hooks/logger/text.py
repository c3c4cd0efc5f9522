"""Log lines of text, and JSON lines."""

from __future__ import annotations

import datetime
import json
import shutil
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

from hookline.compat.mmcv.runner.dist_utils import get_dist_info
from hookline.compat.mmcv.runner.file_client import join_path, resolve_out_dir
from hookline.compat.mmcv.runner.hooks.hook import HOOKS
from hookline.compat.mmcv.runner.hooks.logger.base import LoggerHook
from hookline.compat.openmmlab import scandir

# Values that a line shows elsewhere, or not at all.
NOT_ITEMS = frozenset({"mode", "Epoch", "iter", "lr", "time", "data_time", "memory", "epoch"})


@HOOKS.register_module()
class TextLoggerHook(LoggerHook):
    """Logs to the runner's logger and to `<timestamp>.log.json` in the work directory.

    Args:
        interval_exp_name: The number of iterations between two lines with the experiment's name.
        out_dir: Files are copied to `out_dir/<name of the work directory>` after the run.
        out_suffix: The endings of the files to copy.
        keep_local: Keep the copied files in the work directory too.
    """

    reads_checkpoints = False

    def __init__(
        self,
        by_epoch: bool = True,
        interval: int = 10,
        ignore_last: bool = True,
        reset_flag: bool = False,
        interval_exp_name: int = 1000,
        out_dir: str | None = None,
        out_suffix: str | tuple[str, ...] = (".log.json", ".log", ".py"),
        keep_local: bool = True,
        file_client_args: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(interval, ignore_last, reset_flag, by_epoch)
        self.time_sec_tot = 0.0
        self.interval_exp_name = interval_exp_name
        self.out_dir = out_dir
        self.file_client_args = file_client_args
        self.keep_local = keep_local
        self.out_suffix = (out_suffix,) if isinstance(out_suffix, str) else tuple(out_suffix)
        self.json_log_path: Path | None = None

    def before_run(self, runner: Any) -> None:
        super().before_run(runner)
        if self.out_dir is not None and runner.work_dir is not None:
            self.out_dir, self.file_client = resolve_out_dir(
                runner, self.out_dir, "TextLoggerHook", self.file_client_args
            )
        self.start_iter = runner.iter
        if runner.work_dir is not None:
            self.json_log_path = Path(runner.work_dir) / f"{runner.timestamp}.log.json"
            if runner.meta is not None:
                self._dump_log(runner.meta, runner)

    def log(self, runner: Any) -> OrderedDict[str, Any]:  # type: ignore[override]
        rates = runner.current_lr()
        if isinstance(rates, dict):
            rates = {name: rate[0] for name, rate in rates.items()}
        else:
            rates = rates[0]
        log_dict: OrderedDict[str, Any] = OrderedDict()
        log_dict["mode"] = self.get_mode(runner)
        log_dict["epoch"] = self.get_epoch(runner)
        log_dict["iter"] = self.get_iter(runner, inner_iter=True)
        if "eval_iter_num" in runner.log_buffer.output:  # the length of an evaluation
            log_dict["iter"] = runner.log_buffer.output.pop("eval_iter_num")
        log_dict["lr"] = rates
        if "time" in runner.log_buffer.output and torch.cuda.is_available():
            log_dict["memory"] = self._get_max_memory(runner)
        log_dict.update(runner.log_buffer.output)
        self._log_info(log_dict, runner)
        self._dump_log(log_dict, runner)
        return log_dict

    def after_run(self, runner: Any) -> None:
        if self.out_dir is None or runner.work_dir is None or runner.rank != 0:
            return
        for name in scandir(runner.work_dir, self.out_suffix, True):
            source = Path(runner.work_dir) / name
            copy = join_path(self.file_client, self.out_dir, name)
            if self.file_client is None:
                Path(copy).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, copy)
            else:
                self.file_client.put(source.read_bytes(), copy)
            runner.logger.info("The file %s has been uploaded to %s.", source, copy)
            if not self.keep_local:
                source.unlink()

    def _log_info(self, log_dict: dict[str, Any], runner: Any) -> None:
        if runner.meta is not None and "exp_name" in runner.meta:
            ends_epoch = self.by_epoch and self.end_of_epoch(runner)
            if ends_epoch or self.every_n_iters(runner, self.interval_exp_name):
                runner.logger.info("Exp name: %s", runner.meta["exp_name"])
        text = self._position(log_dict, runner)
        if log_dict["mode"] == "train":
            text += f"{_format_rates(log_dict['lr'])}, {self._times(log_dict, runner)}"
        items = []
        for name, value in log_dict.items():
            if name not in NOT_ITEMS:
                number = f"{value:.4f}" if isinstance(value, float) else value
                items.append(f"{name}: {number}")
        runner.logger.info(text + ", ".join(items))

    def _position(self, log_dict: dict[str, Any], runner: Any) -> str:
        """Return the beginning of a line: the epoch and the iteration."""
        count = log_dict["iter"]
        if log_dict["mode"] != "train":
            if self.by_epoch:
                return f"Epoch(val) [{log_dict['epoch']}][{count}]\t"
            return f"Iter(val) [{count}]\t"
        if self.by_epoch:
            return f"Epoch [{log_dict['epoch']}][{count}/{len(runner.data_loader)}]\t"
        return f"Iter [{count}/{runner.max_iters}]\t"

    def _times(self, log_dict: dict[str, Any], runner: Any) -> str:
        if "time" not in log_dict:
            return ""
        self.time_sec_tot += log_dict["time"] * self.interval
        average = self.time_sec_tot / (runner.iter - self.start_iter + 1)
        eta = datetime.timedelta(seconds=int(average * (runner.max_iters - runner.iter - 1)))
        data_time = log_dict.get("data_time", 0.0)
        text = f"eta: {eta}, time: {log_dict['time']:.3f}, data_time: {data_time:.3f}, "
        if "memory" in log_dict:
            text += f"memory: {log_dict['memory']}, "
        return text

    def _get_max_memory(self, runner: Any) -> int:
        return int(torch.cuda.max_memory_allocated(runner.device) / 2**20)

    def _dump_log(self, log_dict: Any, runner: Any) -> None:
        if self.json_log_path is None or get_dist_info()[0] != 0:
            return
        rounded = {key: self._round_float(value) for key, value in log_dict.items()}
        with self.json_log_path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(rounded, default=str) + "\n")

    def _round_float(self, items: Any) -> Any:
        if isinstance(items, list):
            return [self._round_float(item) for item in items]
        if isinstance(items, torch.Tensor):
            return items.tolist()
        if isinstance(items, float) or hasattr(items, "dtype"):
            return round(float(items), 5)
        return items


def _format_rates(rates: Any) -> str:
    """Return the learning rates as text, by name if there are several optimizers."""
    if not isinstance(rates, dict):
        return f"lr: {rates:.3e}"
    return " ".join(f"lr_{name}: {rate:.3e}" for name, rate in rates.items())
