"""The values of one scalar: a bounded window, and running sums for means over more values."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch

# Iteration, epoch and wall time. A plain tuple, because one is made in every iteration.
Moment = tuple[int, int, float]


class Scalar(NamedTuple):
    """A recorded value and its moment."""

    value: float
    iter: int
    epoch: int
    time: float


class Series:
    """The values of one scalar.

    New values wait in `pending`, because those on a device are fetched together. `settle` moves
    them into the window.

    Args:
        smoothed: Whether writers show a mean rather than the last value.
        window: The number of values to keep.
        running: Sum, count and epoch of the values, under `epoch` and `global`, if means over an
            epoch or the whole run are wanted.
    """

    __slots__ = (
        "is_point",
        "loaded_last_iter",
        "moments",
        "on_device",
        "pending",
        "pending_moments",
        "running",
        "smoothed",
        "window",
    )

    def __init__(
        self, smoothed: bool, window: int, running: dict[str, list[float]] | None = None
    ) -> None:
        self.pending: list[Any] = []  # numbers, and tensors with one element
        self.pending_moments: list[Moment] = []
        self.on_device = False  # whether `pending` has tensors
        self.window: deque[float] = deque(maxlen=window)
        self.moments: deque[Moment | None] = deque(maxlen=window)  # None: not in the checkpoint
        self.smoothed = smoothed
        self.running = running
        self.loaded_last_iter = -1  # the iteration of the last value in a checkpoint
        self.is_point = False  # whether its values are written one by one, not at an interval

    def resize(self, window: int) -> None:
        """Change the number of values to keep."""
        if window != self.window.maxlen:
            self.window = deque(self.window, window)
            self.moments = deque(self.moments, window)

    def append(self, value: float, moment: Moment) -> None:
        """Record a number directly in the window."""
        self.pending.append(value)
        self.pending_moments.append(moment)
        self.settle()

    def settle(self) -> None:
        """Move fetched values into the window."""
        self.window.extend(self.pending)
        self.moments.extend(self.pending_moments)
        if self.running:
            for kind, sums in self.running.items():
                _add(sums, self.pending, self.pending_moments, by_epoch=kind == "epoch")
        self.pending.clear()
        self.pending_moments.clear()
        self.on_device = False

    def last(self, count: int) -> list[float]:
        """Return the last `count` values of the window."""
        return list(islice(self.window, max(len(self.window) - count, 0), None))

    def mean(self, count: int) -> float:
        """Return the mean of the last `count` values."""
        if count == 1:
            return self.window[-1]
        values = self.last(count)
        return sum(values) / len(values)

    def running_mean(self, kind: str) -> float:
        """Return the mean over the current epoch (`epoch`) or all values (`global`)."""
        total, count, _ = self.running[kind] if self.running else (0.0, 0, 0)
        if not count:
            return self.window[-1]
        return total / count

    def last_iter(self) -> int:
        """Return the iteration of the last value, -1 if it is unknown."""
        if self.pending_moments:
            return self.pending_moments[-1][0]
        last = self.moments[-1] if self.moments else None
        return self.loaded_last_iter if last is None else last[0]

    def history(self) -> list[Scalar]:
        """Return the values of the window with their moments."""
        scalars = []
        for value, moment in zip(self.window, self.moments, strict=True):
            if moment is not None:
                scalars.append(Scalar(value, *moment))
        return scalars

    def state_dict(self) -> dict[str, Any]:
        state: dict[str, Any] = {"window": list(self.window), "smoothed": self.smoothed}
        state["last_iter"] = self.last_iter()
        known = [moment for moment in self.moments if moment is not None]
        if known:
            columns = [list(column) for column in zip(*known, strict=True)]
            state["iters"], state["epochs"], state["times"] = columns
        if self.is_point:
            state["is_point"] = True
        if self.running:
            state["running"] = {kind: list(sums) for kind, sums in self.running.items()}
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        window = list(state["window"])
        self.window.extend(window)
        self.is_point = state.get("is_point", False)
        self.loaded_last_iter = state.get("last_iter", -1)
        columns = (state.get(name, []) for name in ("iters", "epochs", "times"))
        known = list(zip(*columns, strict=True))
        # Checkpoints of earlier versions have no moments.
        self.moments.extend([None] * (len(window) - len(known)))
        self.moments.extend(known)
        for kind, sums in state.get("running", {}).items():
            if self.running and kind in self.running:
                self.running[kind] = list(sums)


def fetch(waiting: Iterable[Series]) -> None:
    """Replace the pending tensors of several series by numbers, in one transfer per device."""
    places = [
        (series.pending, index)
        for series in waiting
        if series.on_device
        for index, value in enumerate(series.pending)
        if type(value) is not float
    ]
    numbers = to_numbers([pending[index] for pending, index in places])
    for (pending, index), number in zip(places, numbers, strict=True):
        pending[index] = number


def to_numbers(values: Sequence[Any]) -> list[Any]:
    """Return numbers in place of tensors with one element, with one transfer for each device."""
    numbers = list(values)
    places: dict[torch.device, list[int]] = {}
    for index, value in enumerate(numbers):
        if isinstance(value, torch.Tensor):
            places.setdefault(value.device, []).append(index)
    for indices in places.values():
        fetched = fetch_numbers([numbers[index] for index in indices])
        for index, number in zip(indices, fetched, strict=True):
            numbers[index] = number
    return numbers


def fetch_numbers(tensors: list[torch.Tensor]) -> list[float]:
    """Return the values of one-element tensors of one device, in a single transfer."""
    kinds = {(tensor.dtype, tensor.ndim) for tensor in tensors}
    if len(kinds) == 1:  # Almost always the case, and many times faster.
        values = torch.stack(tensors).flatten().tolist()
        return values if type(values[0]) is float else [float(value) for value in values]
    return torch.stack([tensor.reshape(()).double() for tensor in tensors]).tolist()


def _add(sums: list[float], values: list[float], moments: list[Moment], by_epoch: bool) -> None:
    """Add values one by one, so that a sum does not depend on how often `settle` was called."""
    for value, moment in zip(values, moments, strict=True):
        if by_epoch and moment[1] != sums[2]:
            sums[:] = [0.0, 0.0, moment[1]]
        sums[0] += value
        sums[1] += 1
