"""The position of a run in its data, so that a resumed run continues with the next batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hookline.rng import restore_rng, rng_state


class Epoch(Iterator[Any]):
    """One pass over a loader, from its beginning or from the place of an interruption.

    A loader of torch draws the seed of its workers when the pass begins, and the order with the
    first batch. The state of the random numbers at both times is therefore part of the place. The
    batches before the place are read again and skipped.

    Args:
        loader: The loader.
        place: The result of `place`, or None for the beginning.
    """

    def __init__(self, loader: Any, place: dict[str, Any] | None = None) -> None:
        rng_at_begin, rng_at_first = (None, None) if place is None else place["rng"]
        if rng_at_begin is not None:
            restore_rng(rng_at_begin)
        self._rng_at_begin = rng_state()
        self._rng_at_first: dict[str, Any] | None = None
        self._batches = iter(loader)
        self.position = 0
        if place is not None and rng_at_first is not None:
            restore_rng(rng_at_first)
            for _ in range(place["position"]):
                next(self, None)

    def __next__(self) -> Any:
        if self._rng_at_first is None:
            self._rng_at_first = rng_state()
        batch = next(self._batches)
        self.position += 1
        return batch

    def place(self, position: int) -> dict[str, Any]:
        """Return the place after a number of batches, for a checkpoint."""
        return {"position": position, "rng": [self._rng_at_begin, self._rng_at_first]}
