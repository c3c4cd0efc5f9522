"""What a writer is, and the registry of writers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hookline.events.storage import Record
from hookline.registry import Registry


class Writer:
    """Takes scalars at each logging interval and other records as they come; keeps nothing open after `close`."""

    def write_scalars(self, mode: str, scalars: Mapping[str, float], *, iter: int, epoch: int) -> None:
        """`mode` is train, val or test; `iter` and `epoch` count what is finished."""

    def write(self, record: Record) -> None:
        """An image, histogram, figure, text or file."""

    def close(self) -> None:
        """Write out what is left and let go of everything."""


WRITERS: Registry[Any] = Registry("writer", Writer, home="hookline.events.builtin")
