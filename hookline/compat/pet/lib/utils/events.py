"""Pet's event storage, on top of Hookline's, and the writers that read from it."""

from __future__ import annotations

import json
import statistics
from collections import deque
from collections.abc import Mapping
from contextvars import ContextVar, Token
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from hookline import events
from hookline.compat.pet.lib.utils.misc import logging_rank

KEPT = 10_000  # values of each scalar, at most

_current: ContextVar[EventStorage | None] = ContextVar("pet_event_storage", default=None)


def get_event_storage() -> EventStorage:
    """The storage of the innermost `with EventStorage()`, which writers read; an error outside of one."""
    storage = _current.get()
    assert storage is not None, "get_event_storage() has to be called inside a 'with EventStorage(...)' context!"
    return storage


class HistoryBuffer:
    """The values of one scalar."""

    def __init__(self) -> None:
        self._data: deque[tuple[float, int]] = deque(maxlen=KEPT)
        self._total, self._count = 0.0, 0

    def update(self, value: float, iteration: int) -> None:
        self._data.append((value, iteration))
        self._total += value
        self._count += 1

    def latest(self) -> float:
        return self._data[-1][0]

    def median(self, window_size: int) -> float:
        return statistics.median(self._last(window_size))

    def avg(self, window_size: int) -> float:
        return statistics.fmean(self._last(window_size))

    def global_avg(self) -> float:
        """The mean of all values, also of those that are not kept any more."""
        return self._total / self._count

    def values(self) -> list[tuple[float, int]]:
        """The kept values, each with its iteration."""
        return list(self._data)

    def _last(self, window_size: int) -> list[float]:
        return [value for value, _ in list(self._data)[-window_size:]]


class EventStorage:
    """Scalars of a run. In a `with` block it is the one that writers read; `step()` goes on to the next iteration.

    Each is recorded in `events` too: a Hookline runner's, or an own one.
    """

    def __init__(self, start_iter: int = 0, log_period: int = 20, events_of_a_run: events.EventStorage | None = None) -> None:
        self.iter, self.epoch, self.log_period = start_iter, 0, log_period
        self.events = events_of_a_run if events_of_a_run is not None else events.EventStorage(self)
        self._history: dict[str, HistoryBuffer] = {}
        self._hints: dict[str, bool] = {}
        self._tokens: list[Token[EventStorage | None]] = []

    def put_scalar(self, name: str, value: Any, smoothing_hint: bool = True) -> None:
        """Record a number; without the hint writers show its last value instead of a median."""
        known = self._hints.setdefault(name, smoothing_hint)
        assert known == smoothing_hint, f"Scalar {name} was put with a different smoothing_hint!"
        number = float(value)
        self._history.setdefault(name, HistoryBuffer()).update(number, self.iter)
        self.events.put_scalar(name, number, smoothing_hint)

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
        """The median over a window of each scalar that is smoothed, the last value of the others."""
        return {name: buffer.median(window_size) if self._hints[name] else buffer.latest() for name, buffer in self._history.items()}

    def step(self) -> None:
        self.iter += 1

    def __enter__(self) -> EventStorage:
        self._tokens.append(_current.set(self))
        return self

    def __exit__(self, *error: object) -> None:
        _current.reset(self._tokens.pop())


class EventWriter:
    """Takes what `get_event_storage()` has, each time it is told to."""

    def write(self, **kwargs: Any) -> None:
        raise NotImplementedError

    def close(self) -> None: ...


class CommonMetricPrinter(EventWriter):
    """Logs iteration (and epoch), ETA, losses, times, learning rate and memory in a line."""

    def __init__(self, yaml: str = "", max_iter: int | None = None, window_size: int = 20) -> None:
        self.yaml, self.max_iter, self.window_size = yaml, max_iter, window_size

    def write(self, epoch: int | None = None, max_epoch: int | None = None, **kwargs: Any) -> None:
        storage = get_event_storage()
        shown = storage.latest_with_smoothing_hint(self.window_size)
        iteration = storage.iter if epoch is None or not self.max_iter else storage.iter % self.max_iter
        place = f"[iter: {iteration + 1}/{self.max_iter or '?'}]"
        place = f"[epoch: {epoch}/{max_epoch or '?'}]{place}" if epoch is not None else place
        parts = [f"[{self.yaml}]" if self.yaml else "", "[Training]", place]
        if "time" in shown and self.max_iter:
            left = self.max_iter - iteration - 1 + (((max_epoch or epoch) - epoch) * self.max_iter if epoch is not None else 0)
            parts.append(f"[eta: {timedelta(seconds=int(storage.history('time').global_avg() * left))}]")
        losses = {name: value for name, value in shown.items() if "loss" in name}
        others = {name: value for name, value in shown.items() if "loss" not in name and name not in ("lr", "epoch")}
        parts += [f"[{', '.join(f'{name}: {value:.4f}' for name, value in some.items())}]" for some in (losses, others) if some]
        parts.append(f"[lr: {shown['lr']:.6f}]" if "lr" in shown else "")
        if torch.cuda.is_available():
            parts.append(f"[max_mem: {torch.cuda.max_memory_allocated() / 2**20:.0f}M]")
        logging_rank("".join(parts))


class JSONWriter(EventWriter):
    """Appends `{"iteration": …, "total_loss": …}` to a file, a line each time."""

    def __init__(self, json_file: str | Path, window_size: int = 20) -> None:
        self._file, self._window_size = open(json_file, "a", encoding="utf-8"), window_size  # noqa: SIM115  # until `close`

    def write(self, **kwargs: Any) -> None:
        storage = get_event_storage()
        row = {"iteration": storage.iter, **storage.latest_with_smoothing_hint(self._window_size)}
        self._file.write(json.dumps(row, sort_keys=True) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


class TensorboardXWriter(EventWriter):
    """Writes the scalars to event files for TensorBoard."""

    def __init__(self, log_dir: str | Path, window_size: int = 20, **kwargs: Any) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._window_size, self._writer = window_size, SummaryWriter(str(log_dir), **kwargs)

    def write(self, **kwargs: Any) -> None:
        storage = get_event_storage()
        for name, value in storage.latest_with_smoothing_hint(self._window_size).items():
            self._writer.add_scalar(name, value, storage.iter)

    def close(self) -> None:
        self._writer.close()
