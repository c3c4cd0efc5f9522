"""`runner.log_buffer`: what was measured since the last report, and the averages that loggers show."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

LONGEST = 10_000  # values kept of each variable: a run by iterations never clears them


class LogBuffer:
    """`update` adds values with the number of samples behind them, `average` puts their means into `output`."""

    def __init__(self) -> None:
        self.val_history: OrderedDict[str, list[Any]] = OrderedDict()
        self.n_history: OrderedDict[str, list[int]] = OrderedDict()
        self.output: OrderedDict[str, Any] = OrderedDict()
        self.ready = False

    def clear(self) -> None:
        self.val_history.clear()
        self.n_history.clear()
        self.clear_output()

    def clear_output(self) -> None:
        self.output.clear()
        self.ready = False

    def update(self, vars: Mapping[str, Any], count: int = 1) -> None:
        assert isinstance(vars, Mapping), f"log_buffer.update takes a dict, got {type(vars)}"
        for key, value in vars.items():
            values, counts = self.val_history.setdefault(key, []), self.n_history.setdefault(key, [])
            values.append(value)
            counts.append(count)
            if len(values) > 2 * LONGEST:
                del values[:-LONGEST], counts[:-LONGEST]

    def average(self, n: int = 0) -> None:
        """The mean of the last `n` values, or of all of them, weighted by samples."""
        assert n >= 0, f"n must not be negative, got {n}"
        for key in self.val_history:
            values, counts = self.val_history[key][-n:], self.n_history[key][-n:]
            self.output[key] = sum(float(value) * count for value, count in zip(values, counts, strict=True)) / sum(counts)
        self.ready = True
