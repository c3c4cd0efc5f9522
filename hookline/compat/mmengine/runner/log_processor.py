"""From the message hub to log lines."""

from __future__ import annotations

import copy
import datetime
import re
from collections import OrderedDict
from itertools import chain
from typing import Any

import numpy as np
import torch

from hookline.compat.mmengine.device import get_max_cuda_memory
from hookline.compat.mmengine.registry import LOG_PROCESSORS


@LOG_PROCESSORS.register_module()
class LogProcessor:
    """Smooths scalars over `window_size` values; `custom_cfg` says more: which source, which statistic, over which window."""

    def __init__(
        self,
        window_size: int = 10,
        by_epoch: bool = True,
        custom_cfg: list[dict[str, Any]] | None = None,
        num_digits: int = 4,
        log_with_hierarchy: bool = False,
        mean_pattern: str = r".*(loss|time|data_time|grad_norm).*",
    ) -> None:
        self.window_size, self.by_epoch, self.custom_cfg = window_size, by_epoch, custom_cfg or []
        self.num_digits, self.log_with_hierarchy, self.mean_pattern = num_digits, log_with_hierarchy, re.compile(mean_pattern)
        names = [each.get("log_name", each["data_src"]) for each in self.custom_cfg]
        if len(set(names)) != len(names):
            raise AssertionError(f"Found duplicate names in `custom_cfg` of `log_processor`: {names}")
        if not by_epoch and any(each.get("window_size") == "epoch" for each in self.custom_cfg):
            raise AssertionError("window_size cannot be epoch if LoggerHook.by_epoch is False.")

    def get_log_after_iter(self, runner: Any, batch_idx: int, mode: str) -> tuple[dict[str, Any], str]:
        """The numbers of this moment, and a line that shows them."""
        config = self._parse_windows_size(runner, batch_idx, self.custom_cfg)
        shown = self._collect_scalars(config, runner, mode)
        tag = self._collect_scalars(config, runner, mode, True) if self.log_with_hierarchy else copy.copy(shown)
        rates = {key.removeprefix(f"{mode}/"): value for key, value in tag.items() if key.endswith("lr")}
        for key in rates:
            shown.pop(key)
        text = self._place(runner, batch_idx, mode)
        if self.by_epoch and mode in ("train", "val"):
            tag["epoch"] = self._get_epoch(runner, mode)
        tag["iter"] = runner.iter + 1 if runner.has_train_loop else 0
        text += " ".join(f"{key}: {value:.{self.num_digits}e}" for key, value in rates.items()) + "  "
        text += self._times(runner, shown)
        if torch.cuda.is_available():
            tag["memory"] = get_max_cuda_memory(getattr(runner.model, "output_device", None))
            text += f"memory: {tag['memory']}  "
        if mode in ("train", "val"):
            wanted = {key: value for key, value in shown.items() if mode == "train" or key.startswith("val/loss")}
            text += "  ".join(f"{key}: {self._number(value)}" for key, value in wanted.items())
        return tag, text

    def get_log_after_epoch(self, runner: Any, batch_idx: int, mode: str, with_non_scalar: bool = False) -> tuple[dict[str, Any], str]:
        """The metrics of an evaluation, and a line that shows them."""
        size = self._get_dataloader_size(runner, mode)
        epoch = f"[{self._get_epoch(runner, mode)}]" if self.by_epoch and mode == "val" else ""
        config = copy.deepcopy(self.custom_cfg)
        known = [each["data_src"].removeprefix(f"{mode}/") for each in config]
        extra = [name for name in ("time", "data_time") if name not in known]
        config += [{"data_src": name, "window_size": "epoch", "method_name": "mean"} for name in extra]
        scalars = self._collect_scalars(self._parse_windows_size(runner, batch_idx, config), runner, mode, self.log_with_hierarchy)
        others = self._collect_non_scalars(runner, mode)
        times = {key: value for key, value in scalars.items() if key.removeprefix(f"{mode}/") in ("time", "data_time")}
        tag = OrderedDict((key, value) for key, value in scalars.items() if key not in times)
        items = chain(tag.items(), others.items(), times.items())
        text = "  ".join(f"{key}: {self._number(value)}" for key, value in items)
        if with_non_scalar:
            tag.update(others)
        tag.update(times)
        return tag, f"{'Epoch' if self.by_epoch else 'Iter'}({mode}) {epoch}[{size}/{size}]    {text}"

    def _place(self, runner: Any, batch_idx: int, mode: str) -> str:
        """Where the run is: `Epoch(train)  [1][10/50]  `."""
        size = self._get_dataloader_size(runner, mode)
        if not self.by_epoch:
            done, end = (runner.iter + 1, runner.max_iters) if mode == "train" else (batch_idx + 1, size)
            return f"Iter({mode}) [{str(done).rjust(len(str(end)))}/{end}]  "
        done_text = str(batch_idx + 1).rjust(len(str(size)))
        if mode == "test":
            return f"Epoch({mode}) [{done_text}/{size}]  "
        epoch = f"[{self._get_epoch(runner, mode)}]"
        if runner.has_train_loop:
            epoch = epoch.rjust(len(str(runner.max_epochs)) + 3)
        return f"Epoch({mode}){epoch}[{done_text}/{size}]  "

    def _times(self, runner: Any, shown: dict[str, Any]) -> str:
        eta = runner.message_hub.get_info("eta")
        if eta is None or "time" not in shown or "data_time" not in shown:
            return ""
        times = "".join(f"{name}: {shown.pop(name):.{self.num_digits}f}  " for name in ("time", "data_time"))
        return f"eta: {datetime.timedelta(seconds=int(eta))}  {times}"

    def _number(self, value: Any) -> Any:
        if isinstance(value, float):
            return f"{value:.{self.num_digits}f}"
        return f"\n{value}\n" if isinstance(value, (torch.Tensor, np.ndarray)) else value

    def _collect_scalars(self, custom_cfg: list[dict[str, Any]], runner: Any, mode: str, reserve_prefix: bool = False) -> dict[str, Any]:
        histories = {
            key if reserve_prefix else key.removeprefix(f"{mode}/"): history
            for key, history in runner.message_hub.log_scalars.items()
            if key.startswith(mode)
        }
        tag: dict[str, Any] = OrderedDict()
        for key, history in histories.items():
            tag[key] = history.mean(self.window_size) if self.mean_pattern.search(key) else history.current()
        for config in copy.deepcopy(custom_cfg):
            source = config.pop("data_src")
            name = config.pop("log_name", source)
            prefix = f"{mode}/" if reserve_prefix else ""
            if prefix + source in histories:
                tag[prefix + name] = histories[prefix + source].statistics(**config)
        return tag

    def _collect_non_scalars(self, runner: Any, mode: str) -> dict[str, Any]:
        infos = runner.message_hub.runtime_info.items()
        return {key if self.log_with_hierarchy else key.removeprefix(f"{mode}/"): value for key, value in infos if key.startswith(mode)}

    def _parse_windows_size(self, runner: Any, batch_idx: int, custom_cfg: list[dict[str, Any]] | None = None) -> list[dict[str, Any]]:
        config = copy.deepcopy(self.custom_cfg if custom_cfg is None else custom_cfg)
        for each in config:
            size = each.get("window_size")
            if size in ("epoch", "global"):
                each["window_size"] = batch_idx + 1 if size == "epoch" else runner.iter + 1
            elif size is not None and not isinstance(size, int):
                raise TypeError(f"window_size should be int, epoch or global, but got invalid {size}")
        return config

    def _get_epoch(self, runner: Any, mode: str) -> int:
        return int(runner.epoch + 1 if mode == "train" else runner.epoch if runner.has_train_loop else 0)

    def _get_dataloader_size(self, runner: Any, mode: str) -> int:
        return len(getattr(runner, f"{mode}_loop").dataloader)
