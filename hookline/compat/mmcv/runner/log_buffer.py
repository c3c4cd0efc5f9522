"""`runner.log_buffer`: the values since the last report, and the averages that loggers show."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

MAX_KEPT = 10_000  # values of each variable: a run by iterations never clears them


class LogBuffer:
    """Values with their numbers of samples, and their means in `output`."""

    def __init__(self) -> None:
        self.val_history: OrderedDict[str, list[Any]] = OrderedDict()
        self.n_history: OrderedDict[str, list[int]] = OrderedDict()
        self.output: OrderedDict[str, Any] = OrderedDict()
        self.ready = False

    def clear(self) -> None:
        """Remove all values and their means."""
        self.val_history.clear()
        self.n_history.clear()
        self.clear_output()

    def clear_output(self) -> None:
        """Remove the means."""
        self.output.clear()
        self.ready = False

    def update(self, vars: Mapping[str, Any], count: int = 1) -> None:
        """Add values, each of which is a mean over `count` samples."""
        assert isinstance(vars, Mapping), f"log_buffer.update takes a dict, got {type(vars)}"
        for key, value in vars.items():
            values = self.val_history.setdefault(key, [])
            counts = self.n_history.setdefault(key, [])
            values.append(value)
            counts.append(count)
            if len(values) > 2 * MAX_KEPT:
                del values[:-MAX_KEPT]
                del counts[:-MAX_KEPT]

    def average(self, n: int = 0) -> None:
        """Compute the means of the last `n` values, or of all of them, weighted by samples."""
        assert n >= 0, f"n must not be negative, got {n}"
        for key in self.val_history:
            values = self.val_history[key][-n:]
            counts = self.n_history[key][-n:]
            total = 0.0
            for value, count in zip(values, counts, strict=True):
                total += float(value) * count
            self.output[key] = total / sum(counts)
        self.ready = True
