"""A clock that tests move by hand, so that no test depends on the speed of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from tests.helpers import batches

Timed = TypeVar("Timed", bound=Any)


class FakeClock:
    """A clock that stands still until a test advances it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds

    def drive(self, hook: Timed) -> Timed:
        """Make a hook read this clock; return the hook."""
        hook.clock = self
        return hook


class SlowLoader:
    """A loader that takes some time for each batch.

    Args:
        seconds: The time for one batch.
    """

    def __init__(self, clock: FakeClock, count: int, seconds: float) -> None:
        self.clock = clock
        self.count = count
        self.seconds = seconds

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        for batch in batches(self.count):
            self.clock.advance(self.seconds)
            yield batch
