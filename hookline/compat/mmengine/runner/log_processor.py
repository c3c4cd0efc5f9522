"""Format the values of the message hub as log lines."""

from __future__ import annotations

import datetime
import re
from typing import Any

import torch

TIMES = ("time", "data_time")


class LogProcessor:
    """Formats log lines, and smooths scalars.

    Args:
        window_size: The number of values to average.
        by_epoch: Show epochs; otherwise only iterations are shown.
        num_digits: Digits after the decimal point.
        mean_pattern: A regular expression of the scalars to average; others show their last value.
    """

    def __init__(
        self,
        window_size: int = 10,
        by_epoch: bool = True,
        num_digits: int = 4,
        mean_pattern: str = r".*(loss|time|data_time|grad_norm).*",
    ) -> None:
        self.window_size = window_size
        self.by_epoch = by_epoch
        self.num_digits = num_digits
        self.mean_pattern = re.compile(mean_pattern)

    def get_log_after_iter(
        self, runner: Any, batch_idx: int, mode: str
    ) -> tuple[dict[str, Any], str]:
        """Return the values of the current iteration, and a line with them."""
        tag = self._collect_scalars(runner, mode)
        parts = [self._position(runner, batch_idx, mode)]
        shown = dict(tag)
        for name in [each for each in tag if each.endswith("lr")]:
            parts.append(f"{name}: {shown.pop(name):.{self.num_digits}e}")
        eta = runner.message_hub.get_info("eta")
        if eta is not None:
            parts.append(f"eta: {datetime.timedelta(seconds=int(eta))}")
        times = {name: shown.pop(name) for name in TIMES if name in shown}
        parts.append(self._format(times))
        if torch.cuda.is_available():
            tag["memory"] = torch.cuda.max_memory_allocated() // 2**20
            torch.cuda.reset_peak_memory_stats()
            parts.append(f"memory: {tag['memory']}")
        if mode == "train":
            parts.append(self._format(shown))
        if self.by_epoch and runner.has_train_loop:
            tag["epoch"] = _epoch(runner, mode)
        if runner.has_train_loop:
            tag["iter"] = runner.iter + 1
        return tag, "  ".join(part for part in parts if part)

    def get_log_after_epoch(self, runner: Any, mode: str) -> tuple[dict[str, Any], str]:
        """Return the metrics of an evaluation, and a line with them."""
        tag = self._collect_scalars(runner, mode)
        size = _length(runner, mode)
        position = self._position(runner, size - 1, mode)
        return tag, f"{position}    {self._format(tag)}"

    def _collect_scalars(self, runner: Any, mode: str) -> dict[str, Any]:
        """Return the scalars of a mode; the times come last."""
        tag = {}
        for key, history in runner.message_hub.log_scalars.items():
            if not key.startswith(f"{mode}/"):
                continue
            name = key.removeprefix(f"{mode}/")
            if self.mean_pattern.search(name):
                tag[name] = history.mean(self.window_size)
            else:
                tag[name] = history.current()
        times = {name: tag.pop(name) for name in TIMES if name in tag}
        return {**tag, **times}

    def _position(self, runner: Any, batch_idx: int, mode: str) -> str:
        """Return the beginning of a line, such as `Epoch(train) [1][10/50]`."""
        done = batch_idx + 1
        end = _length(runner, mode)
        if not self.by_epoch:
            if mode == "train":
                done = runner.iter + 1
                end = runner.max_iters
            return f"Iter({mode}) [{done:>{len(str(end))}}/{end}]"
        epoch = "" if mode == "test" else f"[{_epoch(runner, mode)}]"
        return f"Epoch({mode}) {epoch}[{done:>{len(str(end))}}/{end}]"

    def _format(self, values: dict[str, Any]) -> str:
        return "  ".join(f"{key}: {value:.{self.num_digits}f}" for key, value in values.items())


def _epoch(runner: Any, mode: str) -> int:
    """Return the number of the epoch: a validation runs when its epoch is counted."""
    return int(runner.epoch + 1 if mode == "train" else runner.epoch)


def _length(runner: Any, mode: str) -> int:
    return len(getattr(runner, f"{mode}_loop").dataloader)
