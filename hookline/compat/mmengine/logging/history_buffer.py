"""MMEngine's HistoryBuffer: the values of a scalar, with statistics over the latest ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from hookline.events.series import fetch_numbers

Array = np.ndarray[Any, Any]

MAX_PENDING = 1000  # tensors that wait for a transfer
MIN_CAPACITY = 16


class HistoryBuffer:
    """The values of a scalar and their counts.

    The arrays grow by doubling, so the cost of an update does not depend on their length. Tensors
    are fetched from their device together, when a value is read.

    Args:
        log_history: The first values.
        count_history: The count of each value.
        max_length: The number of values to keep.
    """

    _statistics_methods: ClassVar[dict[str, Callable[..., Any]]] = {}

    def __init__(
        self,
        log_history: Sequence[float] = (),
        count_history: Sequence[int] = (),
        max_length: int = 1_000_000,
    ) -> None:
        if len(log_history) != len(count_history):
            raise AssertionError("The lengths of log_history and count_history should be equal")
        self.max_length = max_length
        self._values = np.array(log_history, dtype=np.float64)[-max_length:]
        self._counts = np.array(count_history, dtype=np.int64)[-max_length:]
        self._length = len(self._values)
        self._pending: list[tuple[torch.Tensor, int]] = []

    def update(self, log_val: float | torch.Tensor, count: int = 1) -> None:
        """Append a value, which stands for `count` samples."""
        if isinstance(log_val, torch.Tensor):
            self._pending.append((log_val.detach().clone(), count))
            if len(self._pending) >= MAX_PENDING:
                self._fetch()
            return
        if not isinstance(log_val, (int, float)) or not isinstance(count, (int, float)):
            raise TypeError(
                f"log_val must be int or float but got {type(log_val)}, "
                f"count must be int but got {type(count)}"
            )
        self._fetch()
        self._append(log_val, count)

    @property
    def _log_history(self) -> Array:
        self._fetch()
        return self._values[max(self._length - self.max_length, 0) : self._length]

    @property
    def _count_history(self) -> Array:
        self._fetch()
        return self._counts[max(self._length - self.max_length, 0) : self._length]

    @property
    def data(self) -> tuple[Array, Array]:
        return self._log_history, self._count_history

    @classmethod
    def register_statistics(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Register a function as a statistic for `LogProcessor`'s `method_name`; a decorator."""
        if method.__name__ in cls._statistics_methods:
            raise AssertionError("method_name cannot be registered twice!")
        cls._statistics_methods[method.__name__] = method
        return method

    def statistics(self, method_name: str, *args: Any, **kwargs: Any) -> Any:
        """Return a registered statistic."""
        if method_name not in self._statistics_methods:
            raise KeyError(
                f"{method_name} has not been registered in HistoryBuffer._statistics_methods"
            )
        return self._statistics_methods[method_name](self, *args, **kwargs)

    def mean(self, window_size: int | None = None) -> float:
        """Return the sum of the values divided by the sum of their counts, as MMEngine does."""
        values, counts = self._window(window_size)
        return values.sum() / counts.sum()  # type: ignore[no-any-return]

    def max(self, window_size: int | None = None) -> float:
        return self._window(window_size)[0].max()  # type: ignore[no-any-return]

    def min(self, window_size: int | None = None) -> float:
        return self._window(window_size)[0].min()  # type: ignore[no-any-return]

    def current(self) -> float:
        """Return the last value."""
        if len(self._log_history) == 0:
            raise ValueError(
                "HistoryBuffer._log_history is an empty array! please call update first"
            )
        return self._log_history[-1]  # type: ignore[no-any-return]

    def to_plain(self) -> dict[str, Any]:
        """Return the history as tensors, for a checkpoint."""
        values, counts = self.data
        return {
            "log_history": torch.tensor(values),
            "count_history": torch.tensor(counts),
            "max_length": self.max_length,
        }

    @classmethod
    def from_plain(cls, state: Mapping[str, Any]) -> HistoryBuffer:
        """Return the buffer that `to_plain` was called on."""
        return cls(
            state["log_history"].tolist(), state["count_history"].tolist(), state["max_length"]
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> HistoryBuffer:
        values, counts = self.data
        return type(self)(values.tolist(), counts.tolist(), self.max_length)

    def _window(self, size: int | None) -> tuple[Array, Array]:
        if size is not None and not isinstance(size, int):
            raise AssertionError(f"The type of window size should be int, but got {type(size)}")
        values, counts = self.data
        if size is None:
            return values, counts
        return values[-size:], counts[-size:]

    def _fetch(self) -> None:
        if not self._pending:
            return
        pending = self._pending
        self._pending = []
        numbers = fetch_numbers([value for value, _ in pending])
        for number, (_, count) in zip(numbers, pending, strict=True):
            self._append(number, count)

    def _append(self, value: float, count: int) -> None:
        if self._length == len(self._values):
            self._grow()
        self._values[self._length] = value
        self._counts[self._length] = count
        self._length += 1

    def _grow(self) -> None:
        """Drop the values beyond `max_length` and double the arrays."""
        keep = min(self._length, self.max_length)
        room = max(keep, MIN_CAPACITY)
        kept = slice(self._length - keep, self._length)
        self._values = np.concatenate([self._values[kept], np.zeros(room)])
        self._counts = np.concatenate([self._counts[kept], np.zeros(room, dtype=np.int64)])
        self._length = keep


for _name in ("min", "max", "mean", "current"):
    HistoryBuffer.register_statistics(getattr(HistoryBuffer, _name))
