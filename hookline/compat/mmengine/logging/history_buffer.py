"""MMEngine's HistoryBuffer: the values of a scalar, with statistics over the latest ones."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from hookline.events.series import fetch_numbers

Array = np.ndarray[Any, Any]

MAX_PENDING = 1000  # tensors that wait for a transfer
DEFAULT_STATISTICS = ("min", "max", "mean", "current")


class HistoryBuffer:
    """The values of a scalar and their counts.

    The cost of an update does not depend on their number. Tensors are fetched from their device
    together, when a value is read.

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
        for name in DEFAULT_STATISTICS:
            self._statistics_methods.setdefault(name, getattr(HistoryBuffer, name))
        self.max_length = max_length
        self._values = array("d", np.ravel(log_history))
        self._counts = array("q", np.ravel(count_history).astype(np.int64))
        self._pending: list[tuple[torch.Tensor, int]] = []

    def update(self, log_val: float | torch.Tensor, count: int = 1) -> None:
        """Append a value, which stands for `count` samples."""
        if isinstance(log_val, torch.Tensor) and log_val.numel() == 1:
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
        return self.data[0]

    @property
    def _count_history(self) -> Array:
        return self.data[1]

    @property
    def data(self) -> tuple[Array, Array]:
        return self._window(self.max_length)

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
        values, _ = self._window(1)
        if len(values) == 0:
            raise ValueError(
                "HistoryBuffer._log_history is an empty array! please call update first"
            )
        return values[-1]  # type: ignore[no-any-return]

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
        self._fetch()
        begin = -self.max_length if size is None else -min(size, self.max_length)
        return np.array(self._values[begin:]), np.array(self._counts[begin:])

    def _fetch(self) -> None:
        if not self._pending:
            return
        pending = self._pending
        self._pending = []
        numbers = fetch_numbers([value for value, _ in pending])
        for number, (_, count) in zip(numbers, pending, strict=True):
            self._append(number, count)

    def _append(self, value: float, count: int) -> None:
        self._values.append(value)
        self._counts.append(int(count))
        if len(self._values) >= 2 * self.max_length:  # not each time: it moves all values
            del self._values[: -self.max_length]
            del self._counts[: -self.max_length]
