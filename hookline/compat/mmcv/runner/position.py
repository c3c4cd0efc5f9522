"""Where a run is in its data, so that a resumed one goes on with the next batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hookline.engine.capture import restore_rng, rng_state


class Epoch(Iterator[Any]):
    """One pass over a loader, from its beginning or from the place where it was interrupted.

    A loader of torch draws the seed of its workers when the pass begins and the order when the first batch is asked for,
    so the random numbers of both moments are part of the place; the batches before it are read again and passed over.
    """

    def __init__(self, loader: Any, place: dict[str, Any] | None = None) -> None:
        before, first = (None, None) if place is None else place["rng"]
        if before is not None:
            restore_rng(before)
        self._rng: list[dict[str, Any] | None] = [rng_state(), None]
        self._batches = iter(loader)
        self.position = 0
        if place is not None and first is not None:
            restore_rng(first)
            for _ in range(place["position"]):
                next(self, None)

    def __next__(self) -> Any:
        if self._rng[1] is None:
            self._rng[1] = rng_state()
        batch = next(self._batches)
        self.position += 1
        return batch

    def place(self, position: int) -> dict[str, Any]:
        """What a later run needs to go on after so many batches."""
        return {"position": position, "rng": list(self._rng)}
