"""The position of a run in its data, so that a resumed run continues with the next batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hookline.rng import restore_rng, rng_state


class ResumableEpoch(Iterator[Any]):
    """One pass over a loader, from its beginning or from a saved position.

    A loader of torch draws the seed of its workers when the pass begins, and the order with the
    first batch. The state of the random numbers at both times is therefore saved too. The batches
    before the position are read again and skipped.

    Args:
        loader: The loader.
        state: The result of `state_after`, or None for the beginning.
    """

    def __init__(self, loader: Any, state: dict[str, Any] | None = None) -> None:
        rng_at_begin, rng_at_first = (None, None) if state is None else state["rng"]
        if rng_at_begin is not None:
            restore_rng(rng_at_begin)
        self._rng_at_begin = rng_state()
        self._rng_at_first: dict[str, Any] | None = None
        self._batches = iter(loader)
        self.position = 0
        if state is not None and rng_at_first is not None:
            restore_rng(rng_at_first)
            for _ in range(state["position"]):
                next(self, None)

    def __next__(self) -> Any:
        if self._rng_at_first is None:
            self._rng_at_first = rng_state()
        batch = next(self._batches)
        self.position += 1
        return batch

    def state_after(self, position: int) -> dict[str, Any]:
        """Return the state after a number of batches, for a checkpoint."""
        return {"position": position, "rng": [self._rng_at_begin, self._rng_at_first]}
