"""Pet's event storage, built on Hookline's, and its writers."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping
from contextvars import ContextVar, Token
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from hookline import events
from hookline.compat.pet.lib.utils.misc import logging_rank
from hookline.events.series import Series

MAX_KEPT = 10_000  # values of each scalar

_current: ContextVar[EventStorage | None] = ContextVar("pet_event_storage", default=None)


def get_event_storage() -> EventStorage:
    """Return the storage of the innermost `with EventStorage()`, which writers read."""
    storage = _current.get()
    assert storage is not None, (
        "get_event_storage() has to be called inside a 'with EventStorage(...)' context!"
    )
    return storage


class HistoryBuffer:
    """The values of one scalar, kept in a series of Hookline's events."""

    def __init__(self) -> None:
        self._series = Series(smoothed=True, window=MAX_KEPT, running={"global": [0.0, 0, 0]})

    def update(self, value: float, iteration: int) -> None:
        self._series.append(value, (iteration, 0, 0.0))

    def latest(self) -> float:
        return self._series.window[-1]

    def median(self, window_size: int) -> float:
        return statistics.median(self._series.last(window_size))

    def avg(self, window_size: int) -> float:
        return self._series.mean(window_size)

    def global_avg(self) -> float:
        """Return the mean of all values, including those that are no longer kept."""
        return self._series.running_mean("global")

    def values(self) -> list[tuple[float, int]]:
        """Return the kept values, each with its iteration."""
        return [(scalar.value, scalar.iter) for scalar in self._series.history()]


class EventStorage:
    """The scalars of a run. Inside a `with` block, writers read from it.

    Args:
        start_iter: The first iteration; `step()` counts the next one.
        log_period: The number of iterations between two writes.
        events_of_a_run: The events of a Hookline run, in which scalars are recorded too. None for
            a new store.
    """

    def __init__(
        self,
        start_iter: int = 0,
        log_period: int = 20,
        events_of_a_run: events.EventStorage | None = None,
    ) -> None:
        self.iter = start_iter
        self.epoch = 0
        self.log_period = log_period
        self.events = events_of_a_run if events_of_a_run is not None else events.EventStorage(self)
        self._history: dict[str, HistoryBuffer] = {}
        self._hints: dict[str, bool] = {}
        self._tokens: list[Token[EventStorage | None]] = []

    def put_scalar(self, name: str, value: Any, smoothing_hint: bool = True) -> None:
        """Record a number. Without the hint, writers show its last value instead of a median."""
        self.events.put_scalar(name, self._update(name, value, smoothing_hint), smoothing_hint)

    def put_iteration_scalar(self, name: str, value: Any, smoothing_hint: bool = True) -> None:
        """Record a number that every iteration has; the run's logs show its mean."""
        number = self._update(name, value, smoothing_hint)
        self.events.put_iteration_scalar(name, number, smoothing_hint)

    def _update(self, name: str, value: Any, smoothing_hint: bool) -> float:
        known = self._hints.setdefault(name, smoothing_hint)
        assert known == smoothing_hint, f"Scalar {name} was put with a different smoothing_hint!"
        number = float(value)
        self._history.setdefault(name, HistoryBuffer()).update(number, self.iter)
        return number

    def put_scalars(self, *, smoothing_hint: bool = True, **scalars: Any) -> None:
        for name, value in scalars.items():
            self.put_scalar(name, value, smoothing_hint)

    def put_image(self, name: str, image: Any) -> None:
        self.events.put_image(name, image)

    def history(self, name: str) -> HistoryBuffer:
        if name not in self._history:
            raise KeyError(f"No history metric available for {name}!")
        return self._history[name]

    def histories(self) -> Mapping[str, HistoryBuffer]:
        return self._history

    def smoothing_hints(self) -> Mapping[str, bool]:
        return self._hints

    def latest(self) -> dict[str, float]:
        return {name: buffer.latest() for name, buffer in self._history.items()}

    def latest_with_smoothing_hint(self, window_size: int = 20) -> dict[str, float]:
        """Return the median over a window for smoothed scalars, and the last value of others."""
        shown = {}
        for name, buffer in self._history.items():
            shown[name] = buffer.median(window_size) if self._hints[name] else buffer.latest()
        return shown

    def step(self) -> None:
        self.iter += 1

    def __enter__(self) -> EventStorage:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *error: object) -> None:
        _current.reset(self._tokens.pop())


class EventWriter:
    """The base of writers, which read from `get_event_storage()`."""

    def write(self, **kwargs: Any) -> None:
        raise NotImplementedError

    def close(self) -> None: ...


class CommonMetricPrinter(EventWriter):
    """Log iteration, epoch, ETA, losses, times, learning rate and memory in one line."""

    def __init__(self, yaml: str = "", max_iter: int | None = None, window_size: int = 20) -> None:
        self.yaml = yaml
        self.max_iter = max_iter
        self.window_size = window_size

    def write(self, epoch: int | None = None, max_epoch: int | None = None, **kwargs: Any) -> None:
        storage = get_event_storage()
        shown = storage.latest_with_smoothing_hint(self.window_size)
        iteration = storage.iter
        if epoch is not None and self.max_iter:
            iteration %= self.max_iter
        parts = ["[Training]"]
        if self.yaml:
            parts.insert(0, f"[{self.yaml}]")
        if epoch is not None:
            parts.append(f"[epoch: {epoch}/{max_epoch or '?'}]")
        parts.append(f"[iter: {iteration + 1}/{self.max_iter or '?'}]")
        if "time" in shown and self.max_iter:
            remaining = self.max_iter - iteration - 1
            if epoch is not None:
                remaining += ((max_epoch or epoch) - epoch) * self.max_iter
            seconds = int(storage.history("time").global_avg() * remaining)
            parts.append(f"[eta: {timedelta(seconds=seconds)}]")
        losses = {name: value for name, value in shown.items() if "loss" in name}
        others = {}
        for name, value in shown.items():
            if name not in losses and name not in ("lr", "epoch"):
                others[name] = value
        for scalars in (losses, others):
            if scalars:
                text = ", ".join(f"{name}: {value:.4f}" for name, value in scalars.items())
                parts.append(f"[{text}]")
        if "lr" in shown:
            parts.append(f"[lr: {shown['lr']:.6f}]")
        if torch.cuda.is_available():
            parts.append(f"[max_mem: {torch.cuda.max_memory_allocated() / 2**20:.0f}M]")
        logging_rank("".join(parts))


class JSONWriter(EventWriter):
    """Append a line `{"iteration": …, "total_loss": …}` to a file at each write."""

    def __init__(self, json_file: str | Path, window_size: int = 20) -> None:
        self._file = open(json_file, "a", encoding="utf-8")  # noqa: SIM115  # `close` closes it.
        self._window_size = window_size

    def write(self, **kwargs: Any) -> None:
        storage = get_event_storage()
        row = {"iteration": storage.iter, **storage.latest_with_smoothing_hint(self._window_size)}
        self._file.write(json.dumps(row, sort_keys=True) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class TensorboardXWriter(EventWriter):
    """Write the scalars to event files of TensorBoard."""

    def __init__(self, log_dir: str | Path, window_size: int = 20, **kwargs: Any) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._window_size = window_size
        self._writer = SummaryWriter(str(log_dir), **kwargs)

    def write(self, **kwargs: Any) -> None:
        storage = get_event_storage()
        for name, value in storage.latest_with_smoothing_hint(self._window_size).items():
            self._writer.add_scalar(name, value, storage.iter)

    def close(self) -> None:
        self._writer.close()
