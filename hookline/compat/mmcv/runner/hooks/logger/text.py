"""Lines for people, JSON lines for programs."""

from __future__ import annotations

import datetime
import json
import shutil
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch

from hookline.compat.mmcv.runner.dist_utils import get_dist_info
from hookline.compat.mmcv.runner.hooks.hook import HOOKS
from hookline.compat.mmcv.runner.hooks.logger.base import LoggerHook
from hookline.compat.mmcv.utils.misc import scandir


@HOOKS.register_module()
class TextLoggerHook(LoggerHook):
    """Log to the runner's logger and to `<timestamp>.log.json` in the work directory.

    When the run is over, files that end in one of `out_suffix` are copied to `out_dir/<name of the work directory>`, and
    removed from the work directory unless `keep_local`. Every `interval_exp_name` iterations the experiment is named.
    """

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
        if file_client_args and file_client_args.get("backend") not in (None, "disk"):
            raise ValueError(f"TextLoggerHook: only files on a disk are covered, got file_client_args={file_client_args}")
        self.time_sec_tot = 0.0
        self.interval_exp_name, self.out_dir, self.keep_local = interval_exp_name, out_dir, keep_local
        self.out_suffix = (out_suffix,) if isinstance(out_suffix, str) else tuple(out_suffix)
        self.json_log_path: Path | None = None

    def before_run(self, runner: Any) -> None:
        super().before_run(runner)
        if self.out_dir is not None and runner.work_dir is not None:
            self.out_dir = str(Path(self.out_dir) / Path(runner.work_dir).name)
        self.start_iter = runner.iter
        if runner.work_dir is not None:
            self.json_log_path = Path(runner.work_dir) / f"{runner.timestamp}.log.json"
            if runner.meta is not None:
                self._dump_log(runner.meta, runner)

    def log(self, runner: Any) -> OrderedDict[str, Any]:  # type: ignore[override]
        rates = runner.current_lr()
        log_dict: OrderedDict[str, Any] = OrderedDict(
            mode=self.get_mode(runner),
            epoch=self.get_epoch(runner),
            iter=runner.log_buffer.output.pop("eval_iter_num", self.get_iter(runner, inner_iter=True)),  # of an evaluation: its length
            lr={name: rate[0] for name, rate in rates.items()} if isinstance(rates, dict) else rates[0],
        )
        if "time" in runner.log_buffer.output and torch.cuda.is_available():
            log_dict["memory"] = self._get_max_memory(runner)
        log_dict.update(runner.log_buffer.output)
        self._log_info(log_dict, runner)
        self._dump_log(log_dict, runner)
        return log_dict

    def after_run(self, runner: Any) -> None:
        if self.out_dir is None or runner.work_dir is None or runner.rank != 0:
            return
        target = Path(self.out_dir)
        for name in scandir(runner.work_dir, self.out_suffix, True):
            source, copy = Path(runner.work_dir) / name, target / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy)
            runner.logger.info("The file %s has been uploaded to %s.", source, copy)
            if not self.keep_local:
                source.unlink()

    def _log_info(self, log_dict: dict[str, Any], runner: Any) -> None:
        if runner.meta is not None and "exp_name" in runner.meta and (
            self.every_n_iters(runner, self.interval_exp_name) or (self.by_epoch and self.end_of_epoch(runner))
        ):  # fmt: skip
            runner.logger.info("Exp name: %s", runner.meta["exp_name"])
        train = log_dict["mode"] == "train"
        text = f"Epoch [{log_dict['epoch']}][{log_dict['iter']}/{len(runner.data_loader)}]\t" if self.by_epoch else (
            f"Iter [{log_dict['iter']}/{runner.max_iters}]\t")  # fmt: skip
        if not train:
            count = log_dict["iter"]
            text = f"Epoch(val) [{log_dict['epoch']}][{count}]\t" if self.by_epoch else f"Iter(val) [{count}]\t"
        else:
            rates = log_dict["lr"] if isinstance(log_dict["lr"], dict) else {"": log_dict["lr"]}
            text += " ".join(f"lr{f'_{name}' if name else ''}: {rate:.3e}" for name, rate in rates.items()) + ", "
            text += self._times(log_dict, runner)
        skipped = {"mode", "Epoch", "iter", "lr", "time", "data_time", "memory", "epoch"}
        items = [f"{name}: {value:.4f}" if isinstance(value, float) else f"{name}: {value}"
                 for name, value in log_dict.items() if name not in skipped]  # fmt: skip
        runner.logger.info(text + ", ".join(items))

    def _times(self, log_dict: dict[str, Any], runner: Any) -> str:
        if "time" not in log_dict:
            return ""
        self.time_sec_tot += log_dict["time"] * self.interval
        average = self.time_sec_tot / (runner.iter - self.start_iter + 1)
        eta = datetime.timedelta(seconds=int(average * (runner.max_iters - runner.iter - 1)))
        text = f"eta: {eta}, time: {log_dict['time']:.3f}, data_time: {log_dict.get('data_time', 0.0):.3f}, "
        return text + (f"memory: {log_dict['memory']}, " if "memory" in log_dict else "")

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
        return round(float(items), 5) if isinstance(items, float) or hasattr(items, "dtype") else items
