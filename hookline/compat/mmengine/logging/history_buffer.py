"""The values that a scalar had, with statistics over the latest of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch


class HistoryBuffer:
    """Grows by doubling, so that an update costs the same after a million values as after ten.

    Values that are still on an accelerator are fetched when somebody looks, all in one transfer.
    """

    _statistics_methods: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __init__(self, log_history: Sequence[float] = (), count_history: Sequence[int] = (), max_length: int = 1_000_000) -> None:
        if len(log_history) != len(count_history):
            raise AssertionError("The lengths of log_history and count_history should be equal")
        self.max_length = max_length
        self._values = np.array(log_history, dtype=np.float64)[-max_length:]
        self._counts = np.array(count_history, dtype=np.int64)[-max_length:]
        self._length = len(self._values)
        self._pending: list[tuple[torch.Tensor, int]] = []

    def update(self, log_val: float | torch.Tensor, count: int = 1) -> None:
        if isinstance(log_val, torch.Tensor):
            self._pending.append((log_val.detach().clone(), count))
            if len(self._pending) >= 1000:
                self._fetch()
            return
        if not isinstance(log_val, (int, float)) or not isinstance(count, (int, float)):
            raise TypeError(f"log_val must be int or float but got {type(log_val)}, count must be int but got {type(count)}")
        self._fetch()
        self._append(log_val, count)

    @property
    def _log_history(self) -> np.ndarray[Any, Any]:
        self._fetch()
        return self._values[max(self._length - self.max_length, 0) : self._length]

    @property
    def _count_history(self) -> np.ndarray[Any, Any]:
        self._fetch()
        return self._counts[max(self._length - self.max_length, 0) : self._length]

    @property
    def data(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        return self._log_history, self._count_history

    @classmethod
    def register_statistics(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: a further statistic, for `LogProcessor`'s `method_name`."""
        if method.__name__ in cls._statistics_methods:
            raise AssertionError("method_name cannot be registered twice!")
        cls._statistics_methods[method.__name__] = method
        return method

    def statistics(self, method_name: str, *args: Any, **kwargs: Any) -> Any:
        if method_name not in self._statistics_methods:
            raise KeyError(f"{method_name} has not been registered in HistoryBuffer._statistics_methods")
        return self._statistics_methods[method_name](self, *args, **kwargs)

    def mean(self, window_size: int | None = None) -> float:
        values, counts = self._window(window_size)
        return values.sum() / counts.sum()  # type: ignore[no-any-return]

    def max(self, window_size: int | None = None) -> float:
        return self._window(window_size)[0].max()  # type: ignore[no-any-return]

    def min(self, window_size: int | None = None) -> float:
        return self._window(window_size)[0].min()  # type: ignore[no-any-return]

    def current(self) -> float:
        if len(self._log_history) == 0:
            raise ValueError("HistoryBuffer._log_history is an empty array! please call update first")
        return self._log_history[-1]  # type: ignore[no-any-return]

    def to_plain(self) -> dict[str, Any]:
        """The history as tensors, for a checkpoint."""
        values, counts = self.data
        return {"log_history": torch.tensor(values), "count_history": torch.tensor(counts), "max_length": self.max_length}

    @classmethod
    def from_plain(cls, state: Mapping[str, Any]) -> HistoryBuffer:
        return cls(state["log_history"].tolist(), state["count_history"].tolist(), state["max_length"])

    def __deepcopy__(self, memo: dict[int, Any]) -> HistoryBuffer:
        values, counts = self.data
        return type(self)(values.tolist(), counts.tolist(), self.max_length)

    def _window(self, size: int | None) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        if size is not None and not isinstance(size, int):
            raise AssertionError(f"The type of window size should be int, but got {type(size)}")
        values, counts = self.data
        return (values, counts) if size is None else (values[-size:], counts[-size:])

    def _fetch(self) -> None:
        if self._pending:
            pending, self._pending = self._pending, []
            numbers = torch.stack([value.reshape(()).double() for value, _ in pending]).tolist()
            for number, (_, count) in zip(numbers, pending, strict=True):
                self._append(number, count)

    def _append(self, value: float, count: int) -> None:
        if self._length == len(self._values):
            keep = min(self._length, self.max_length)
            room = np.zeros(max(keep, 16))
            self._values = np.concatenate([self._values[self._length - keep : self._length], room])
            self._counts = np.concatenate([self._counts[self._length - keep : self._length], room.astype(np.int64)])
            self._length = keep
        self._values[self._length], self._counts[self._length] = value, count
        self._length += 1


for _name in ("min", "max", "mean", "current"):
    HistoryBuffer.register_statistics(getattr(HistoryBuffer, _name))
