"""One scalar: values not fetched yet, a bounded window of those that were, and sums for means over more than that."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

import torch

Moment = tuple[int, int, float]  # iteration, epoch and wall time: a plain tuple, for one is made in every iteration


class Scalar(NamedTuple):
    """A value and when it was recorded."""

    value: float
    iter: int
    epoch: int
    time: float


class Series:
    """The values of one scalar."""

    __slots__ = ("moments", "on_device", "pending", "pending_moments", "running", "smoothed", "window")

    def __init__(self, smoothed: bool, window: int, running: dict[str, list[float]] | None = None) -> None:
        self.pending: list[Any] = []  # numbers, and tensors of one
        self.pending_moments: list[Moment] = []
        self.on_device = False  # whether there are tensors among the pending
        self.window: deque[float] = deque(maxlen=window)
        self.moments: deque[Moment | None] = deque(maxlen=window)  # None: recorded before a resume
        self.smoothed = smoothed
        self.running = running  # by "epoch" and "global", where means over these are wanted: sum, count, epoch

    def resize(self, window: int) -> None:
        if window != self.window.maxlen:
            self.window, self.moments = deque(self.window, window), deque(self.moments, window)

    def settle(self) -> None:
        """Move what was fetched into the window."""
        self.window.extend(self.pending)
        self.moments.extend(self.pending_moments)
        if self.running:
            for kind, sums in self.running.items():
                _add(sums, self.pending, self.pending_moments, by_epoch=kind == "epoch")
        self.pending.clear()
        self.pending_moments.clear()
        self.on_device = False

    def mean(self, count: int) -> float:
        """The mean of the last `count` values."""
        length = len(self.window)
        if count == 1:
            return self.window[-1]
        values = list(islice(self.window, max(length - count, 0), None))
        return sum(values) / len(values)

    def running_mean(self, kind: str) -> float:
        total, count, _ = self.running[kind] if self.running else (0.0, 0, 0)
        return total / count if count else self.window[-1]

    def last_iter(self) -> int:
        if self.pending_moments:
            return self.pending_moments[-1][0]
        last = self.moments[-1] if self.moments else None
        return -1 if last is None else last[0]

    def history(self) -> list[Scalar]:
        return [Scalar(value, *moment) for value, moment in zip(self.window, self.moments, strict=True) if moment is not None]

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"window": list(self.window), "smoothed": self.smoothed}
        return {**state, "running": {kind: list(sums) for kind, sums in self.running.items()}} if self.running else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.window.extend(state["window"])
        self.moments.extend([None] * len(self.window))
        for kind, sums in state.get("running", {}).items():
            if self.running and kind in self.running:
                self.running[kind] = list(sums)


def fetch(waiting: Iterable[Series]) -> None:
    """Replace the tensors among pending values by numbers, in one transfer for each device."""
    places: dict[torch.device, list[tuple[list[Any], int]]] = {}
    for series in waiting:
        if series.on_device:
            for index, value in enumerate(series.pending):
                if type(value) is not float:
                    places.setdefault(value.device, []).append((series.pending, index))
    for found in places.values():
        numbers = _numbers([pending[index] for pending, index in found])
        for (pending, index), number in zip(found, numbers, strict=True):
            pending[index] = number


def _numbers(tensors: list[torch.Tensor]) -> list[float]:
    """The values of many tensors of one device, in their order."""
    if len({(tensor.dtype, tensor.ndim) for tensor in tensors}) == 1:  # almost always, and many times faster
        values = torch.stack(tensors).flatten().tolist()
        return values if type(values[0]) is float else [float(value) for value in values]
    return torch.stack([tensor.reshape(()).double() for tensor in tensors]).tolist()


def _add(sums: list[float], values: list[float], moments: list[Moment], by_epoch: bool) -> None:
    """One by one, so that a sum does not depend on how often there was something to report."""
    for value, moment in zip(values, moments, strict=True):
        if by_epoch and moment[1] != sums[2]:
            sums[:] = [0.0, 0.0, moment[1]]
        sums[0] += value
        sums[1] += 1
