"""EventStorage: scalars with their recent history, and images, figures, histograms, text and files on their way to writers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import torch

WINDOW = 256  # values kept per scalar, the most that a mean can be taken over
PENDING = 1024  # values of one scalar that may wait on the device before they are fetched unasked


class Clock(Protocol):
    """What tells the storage where in the run it is; the runner does."""

    iter: int
    epoch: int


class Record(NamedTuple):
    """Something other than a scalar, with the moment it belongs to."""

    kind: str  # image, histogram, figure, text or artifact
    name: str
    value: Any
    iter: int
    epoch: int
    time: float


class Series:
    """One scalar: values not fetched yet, and a bounded window of those that were."""

    __slots__ = ("pending", "smoothed", "window")

    def __init__(self, smoothed: bool) -> None:
        self.pending: list[Any] = []
        self.window: deque[float] = deque(maxlen=WINDOW)
        self.smoothed = smoothed


class EventStorage:
    """Records values as they come, tensors on their device; `flush` fetches them all in one transfer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._series: dict[str, Series] = {}
        self.recorded = 0  # how many scalars so far; whoever reports them can tell whether there are new ones
        self.listeners: list[Any] = []  # writers that take records as they come

    def put_scalar(self, name: str, value: Any, smoothing_hint: bool = True) -> None:
        """Record a number or a scalar tensor; without smoothing its latest value is shown instead of a mean."""
        series = self._series.get(name)
        if series is None:
            series = self._series[name] = Series(smoothing_hint)
        if isinstance(value, torch.Tensor):
            value = value.detach()
        series.pending.append(value)
        self.recorded += 1
        if len(series.pending) >= PENDING:
            self.flush()

    def put_scalars(self, scalars: Mapping[str, Any] | None = None, *, smoothing_hint: bool = True, **more: Any) -> None:
        """Record several at once, from a mapping or by keyword."""
        for name, value in {**(scalars or {}), **more}.items():
            self.put_scalar(name, value, smoothing_hint)

    def put_image(self, name: str, image: Any) -> None:
        """Record a picture: an array or tensor, HWC or CHW."""
        self._emit("image", name, image)

    def put_histogram(self, name: str, values: Any) -> None:
        self._emit("histogram", name, values)

    def put_figure(self, name: str, figure: Any) -> None:
        """Record a matplotlib figure."""
        self._emit("figure", name, figure)

    def put_text(self, name: str, text: str) -> None:
        self._emit("text", name, text)

    def put_artifact(self, name: str, path: Any) -> None:
        """Record a file."""
        self._emit("artifact", name, path)

    def latest(self) -> dict[str, float]:
        """The last value of each scalar."""
        self.flush()
        return {name: series.window[-1] for name, series in self._series.items() if series.window}

    def means(self, count: int) -> dict[str, float]:
        """The mean of each scalar over its last `count` values; the last value of those that are not smoothed."""
        self.flush()
        result = {}
        for name, series in self._series.items():
            if series.window:
                values = list(series.window)[-count:] if series.smoothed else [series.window[-1]]
                result[name] = sum(values) / len(values)
        return result

    def flush(self) -> None:
        """Fetch what still waits on a device, in one transfer for each."""
        waiting: dict[torch.device, list[tuple[list[Any], int]]] = {}
        for series in self._series.values():
            for index, value in enumerate(series.pending):
                if isinstance(value, torch.Tensor):
                    waiting.setdefault(value.device, []).append((series.pending, index))
        for places in waiting.values():
            numbers = torch.stack([pending[index].reshape(()).double() for pending, index in places]).tolist()
            for (pending, index), number in zip(places, numbers, strict=True):
                pending[index] = number
        for series in self._series.values():
            series.window.extend(float(value) for value in series.pending)
            series.pending.clear()

    def state_dict(self) -> dict[str, Any]:
        """What smoothing needs after a resume."""
        self.flush()
        return {name: {"window": list(series.window), "smoothed": series.smoothed} for name, series in self._series.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._series.clear()
        for name, saved in state.items():
            self._series[name] = Series(saved["smoothed"])
            self._series[name].window.extend(saved["window"])

    def _emit(self, kind: str, name: str, value: Any) -> None:
        record = Record(kind, name, value, self._clock.iter, self._clock.epoch, time.time())
        for listener in self.listeners:
            listener.write(record)
