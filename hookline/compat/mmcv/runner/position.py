"""The position of a run in its data, so that a resumed run continues with the next batch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from hookline.compat.persistent_workers import (
    capture_workers,
    continuing_workers,
    follow_workers,
)
from hookline.rng import restore_rng, rng_state


class ResumableEpoch(Iterator[Any]):
    """One pass over a loader, from its beginning or from a saved position.

    A loader of torch draws the seed of its workers when the pass begins, and the order with the
    first batch. The state of the random numbers at both times is therefore saved too. The batches
    before the position are read again and skipped.

    Args:
        loader: The loader.
        state: The result of `state_after`, or None for the beginning.
        workers: The states of the loader's persistent workers in a checkpoint between two passes.
    """

    def __init__(
        self,
        loader: Any,
        state: dict[str, Any] | None = None,
        workers: torch.Tensor | None = None,
    ) -> None:
        rng_at_begin, rng_at_first = (None, None) if state is None else state["rng"]
        if rng_at_begin is not None:
            restore_rng(rng_at_begin)
        self._rng_at_begin = rng_state()
        self._rng_at_first: dict[str, Any] | None = None
        if state is not None:
            workers = state.get("workers")
        with continuing_workers(loader, workers) as self._workers_at_begin:
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
        return {
            "position": position,
            "rng": [self._rng_at_begin, self._rng_at_first],
            "workers": self._workers_at_begin,
        }


class WorkersOfLoaders:
    """The persistent workers of the loaders of a run, with their random numbers."""

    def __init__(self) -> None:
        # By the `id` of the loader that was given: that loader, and the followed one.
        self._loaders: dict[int, tuple[Any, Any]] = {}
        self._resumed: dict[int, torch.Tensor | None] = {}  # by the `id` of the followed loader

    def follow(self, loader: Any) -> Any:
        """Return a loader whose workers are followed, the same one for the same argument."""
        if id(loader) not in self._loaders:
            self._loaders[id(loader)] = (loader, follow_workers(loader))
        return self._loaders[id(loader)][1]

    def capture(self) -> list[torch.Tensor | None]:
        """Return the states of the workers of each loader."""
        return [capture_workers(followed) for _, followed in self._loaders.values()]

    def resume(self, states: Iterable[torch.Tensor | None]) -> None:
        """Keep the states of a checkpoint, each for the loader in its place."""
        for (_, followed), state in zip(self._loaders.values(), states, strict=False):
            self._resumed[id(followed)] = state

    def take_resumed(self, loader: Any) -> torch.Tensor | None:
        """Return the states of a checkpoint for a followed loader, once."""
        return self._resumed.pop(id(loader), None)
