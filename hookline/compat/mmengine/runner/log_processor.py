"""Format the values of the message hub as log lines."""

from __future__ import annotations

import copy
import datetime
import re
from collections import OrderedDict
from typing import Any

import numpy as np
import torch

from hookline.compat.mmengine.device import get_max_cuda_memory
from hookline.compat.mmengine.registry import LOG_PROCESSORS

TIMES = ("time", "data_time")


@LOG_PROCESSORS.register_module()
class LogProcessor:
    """Formats log lines, and smooths scalars.

    Args:
        window_size: The number of values to average.
        by_epoch: Show epochs; otherwise only iterations are shown.
        custom_cfg: Further statistics: dicts with `data_src`, `method_name`, `window_size` and
            `log_name`.
        num_digits: Digits after the decimal point.
        log_with_hierarchy: Keep the mode in the names of recorded values, as in `train/loss`.
        mean_pattern: A regular expression of the scalars to average; others show their last value.
    """

    def __init__(
        self,
        window_size: int = 10,
        by_epoch: bool = True,
        custom_cfg: list[dict[str, Any]] | None = None,
        num_digits: int = 4,
        log_with_hierarchy: bool = False,
        mean_pattern: str = r".*(loss|time|data_time|grad_norm).*",
    ) -> None:
        self.window_size = window_size
        self.by_epoch = by_epoch
        self.custom_cfg = custom_cfg or []
        self.num_digits = num_digits
        self.log_with_hierarchy = log_with_hierarchy
        self.mean_pattern = re.compile(mean_pattern)
        names = [entry.get("log_name", entry["data_src"]) for entry in self.custom_cfg]
        if len(set(names)) != len(names):
            raise AssertionError(
                f"Found duplicate names in `custom_cfg` of `log_processor`: {names}"
            )
        for entry in self.custom_cfg:
            if not by_epoch and entry.get("window_size") == "epoch":
                raise AssertionError("window_size cannot be epoch if LoggerHook.by_epoch is False.")

    def get_log_after_iter(
        self, runner: Any, batch_idx: int, mode: str
    ) -> tuple[dict[str, Any], str]:
        """Return the values of the current iteration, and a line with them."""
        config = self._parse_windows_size(runner, batch_idx, self.custom_cfg)
        shown = self._collect_scalars(config, runner, mode)
        tag = copy.copy(shown)
        if self.log_with_hierarchy:
            tag = self._collect_scalars(config, runner, mode, reserve_prefix=True)
        rates = []
        for key, value in tag.items():
            if key.endswith("lr"):
                name = key.removeprefix(f"{mode}/")
                rates.append(f"{name}: {value:.{self.num_digits}e}")
                shown.pop(name)
        text = self._position(runner, batch_idx, mode)
        if self.by_epoch and mode in ("train", "val"):
            tag["epoch"] = self._get_epoch(runner, mode)
        tag["iter"] = runner.iter + 1 if runner.has_train_loop else 0
        text += f"{' '.join(rates)}  {self._times(runner, shown)}"
        if torch.cuda.is_available():
            tag["memory"] = get_max_cuda_memory(getattr(runner.model, "output_device", None))
            text += f"memory: {tag['memory']}  "
        if mode == "val":
            shown = {key: value for key, value in shown.items() if key.startswith("val/loss")}
        if mode in ("train", "val"):
            text += self._format(shown)
        return tag, text

    def get_log_after_epoch(
        self, runner: Any, batch_idx: int, mode: str, with_non_scalar: bool = False
    ) -> tuple[dict[str, Any], str]:
        """Return the metrics of an evaluation, and a line with them."""
        config = self._parse_windows_size(runner, batch_idx, self._with_times(mode))
        scalars = self._collect_scalars(config, runner, mode, self.log_with_hierarchy)
        others = self._collect_non_scalars(runner, mode)
        tag: dict[str, Any] = OrderedDict()
        times = {}
        for key, value in scalars.items():
            if key.removeprefix(f"{mode}/") in TIMES:
                times[key] = value
            else:
                tag[key] = value
        values = self._format({**tag, **others, **times})
        if with_non_scalar:
            tag.update(others)
        tag.update(times)
        unit = "Epoch" if self.by_epoch else "Iter"
        epoch = f"[{self._get_epoch(runner, mode)}]" if self.by_epoch and mode == "val" else ""
        size = self._get_dataloader_size(runner, mode)
        return tag, f"{unit}({mode}) {epoch}[{size}/{size}]    {values}"

    def _with_times(self, mode: str) -> list[dict[str, Any]]:
        """Return `custom_cfg` with the mean times of the epoch, unless it has them."""
        config = copy.deepcopy(self.custom_cfg)
        known = [entry["data_src"].removeprefix(f"{mode}/") for entry in config]
        for name in TIMES:
            if name not in known:
                config.append({"data_src": name, "window_size": "epoch", "method_name": "mean"})
        return config

    def _position(self, runner: Any, batch_idx: int, mode: str) -> str:
        """Return the beginning of a line, such as `Epoch(train)  [1][10/50]  `."""
        size = self._get_dataloader_size(runner, mode)
        if self.by_epoch:
            done = _justified(batch_idx + 1, size)
            if mode == "test":
                return f"Epoch({mode}) [{done}/{size}]  "
            epoch = f"[{self._get_epoch(runner, mode)}]"
            if runner.has_train_loop:
                epoch = epoch.rjust(len(str(runner.max_epochs)) + 3)
            return f"Epoch({mode}){epoch}[{done}/{size}]  "
        if mode == "train":
            end = runner.max_iters
            return f"Iter({mode}) [{_justified(runner.iter + 1, end)}/{end}]  "
        return f"Iter({mode}) [{_justified(batch_idx + 1, size)}/{size}]  "

    def _times(self, runner: Any, shown: dict[str, Any]) -> str:
        """Return the estimated time to the end and the mean times, and remove them from `shown`."""
        eta = runner.message_hub.get_info("eta")
        if eta is None or "time" not in shown or "data_time" not in shown:
            return ""
        text = f"eta: {datetime.timedelta(seconds=int(eta))}  "
        for name in TIMES:
            text += f"{name}: {shown.pop(name):.{self.num_digits}f}  "
        return text

    def _format(self, values: dict[str, Any]) -> str:
        return "  ".join(f"{key}: {self._number(value)}" for key, value in values.items())

    def _number(self, value: Any) -> Any:
        if isinstance(value, float):
            return f"{value:.{self.num_digits}f}"
        return f"\n{value}\n" if isinstance(value, (torch.Tensor, np.ndarray)) else value

    def _collect_scalars(
        self, custom_cfg: list[dict[str, Any]], runner: Any, mode: str, reserve_prefix: bool = False
    ) -> dict[str, Any]:
        prefix = f"{mode}/"
        histories = {}
        tag: dict[str, Any] = OrderedDict()
        for full_key, history in runner.message_hub.log_scalars.items():
            if not full_key.startswith(mode):
                continue
            key = full_key if reserve_prefix else full_key.removeprefix(prefix)
            histories[key] = history
            if self.mean_pattern.search(key):
                tag[key] = history.mean(self.window_size)
            else:
                tag[key] = history.current()
        for config in copy.deepcopy(custom_cfg):
            source = config.pop("data_src")
            name = config.pop("log_name", source)
            if reserve_prefix:
                source = prefix + source
                name = prefix + name
            if source in histories:
                tag[name] = histories[source].statistics(**config)
        return tag

    def _collect_non_scalars(self, runner: Any, mode: str) -> dict[str, Any]:
        found = {}
        for key, value in runner.message_hub.runtime_info.items():
            if key.startswith(mode):
                name = key if self.log_with_hierarchy else key.removeprefix(f"{mode}/")
                found[name] = value
        return found

    def _parse_windows_size(
        self, runner: Any, batch_idx: int, custom_cfg: list[dict[str, Any]] | None = None
    ) -> list[dict[str, Any]]:
        config = copy.deepcopy(self.custom_cfg if custom_cfg is None else custom_cfg)
        for entry in config:
            size = entry.get("window_size")
            if size == "epoch":
                entry["window_size"] = batch_idx + 1
            elif size == "global":
                entry["window_size"] = runner.iter + 1
            elif size is not None and not isinstance(size, int):
                raise TypeError(
                    f"window_size should be int, epoch or global, but got invalid {size}"
                )
        return config

    def _get_epoch(self, runner: Any, mode: str) -> int:
        if mode == "train":
            return int(runner.epoch + 1)
        return int(runner.epoch) if runner.has_train_loop else 0

    def _get_dataloader_size(self, runner: Any, mode: str) -> int:
        return len(getattr(runner, f"{mode}_loop").dataloader)


def _justified(number: int, end: int) -> str:
    """Return a number with spaces before it, as wide as the last one."""
    return str(number).rjust(len(str(end)))
