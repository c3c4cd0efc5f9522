"""Resume a loader without positions: read its epoch again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from hookline.data.generators import Isolated, capture_generators, restore_generators
from hookline.data.protocols import set_loader_epoch
from hookline.rng import restore_rng, rng_state


class RereadPosition:
    """The position in a loader that must be read again from the beginning of the epoch.

    Args:
        loader: The loader.
        announcement: Why; None for a list, which costs nothing to read.
        is_isolated: Read each batch with copies of the global generators, so that reading it again
            gives the same batch.
    """

    is_shared = False

    def __init__(
        self, loader: Any, announcement: str | None = None, is_isolated: bool = False
    ) -> None:
        self.epoch = 0
        self.batches_done = 0
        self.announcement = announcement
        self._loader = loader
        self._is_isolated = is_isolated
        self._start: dict[str, Any] | None = None  # the generators at the epoch's beginning

    def begin_epoch(self) -> Iterator[Any]:
        """Return the batches from the position on."""
        if self.batches_done == 0:
            self._start = {"rng": rng_state(), "generators": capture_generators(self._loader)}
            return self._open()
        before = rng_state()
        if self._start is not None:
            restore_rng(self._start["rng"])
            restore_generators(self._loader, self._start["generators"])
        batches = self._open()
        deque(islice(batches, self.batches_done), maxlen=0)
        restore_rng(before)
        return batches

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch = epoch
        self.batches_done = 0
        set_loader_epoch(self._loader, epoch)

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Return the number of batches, and the generators at the epoch's beginning."""
        state: dict[str, Any] = {"kind": "reread", "epoch": self.epoch, "batches": batches_done}
        if batches_done:
            state["start"] = self._start
        else:
            state["generators"] = capture_generators(self._loader)
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position."""
        self.batches_done = state["batches"]
        self._start = state.get("start")
        restore_generators(self._loader, state.get("generators", {}))

    def _open(self) -> Iterator[Any]:
        batches: Iterator[Any] = iter(self._loader)
        return Isolated(batches) if self._is_isolated else batches
