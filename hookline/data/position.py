"""The position in the training data: captured for checkpoints, restored on resume."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hookline.data.protocols import is_epoch_aware, is_positioned, is_stateful


class DataPosition:
    """Where a run is in its training data.

    A loader of Hookline begins at any batch, and one with `state_dict` keeps its own position. Any
    other loader is read from the epoch's beginning, and the batches before the position are
    skipped.

    Attributes:
        batches_to_skip: Batches that `open_epoch` reads again and skips, after a resume.
    """

    def __init__(self) -> None:
        self.batches_to_skip = 0
        self._is_placed = False  # a resume has put the loader into the current epoch
        self._held: Any = None  # the state before a batch that was read ahead

    def open_epoch(
        self, loader: Iterable[Any] | None, epoch: int, batches_done: int
    ) -> Iterator[Any]:
        """Return the batches that an epoch still has."""
        assert loader is not None
        if batches_done == 0 and not self._is_placed:
            set_loader_epoch(loader, epoch)
        self._is_placed = False
        batches = iter(loader)
        for _ in range(self.batches_to_skip):
            next(batches, None)
        self.batches_to_skip = 0
        return batches

    def state(self, loader: Iterable[Any] | None, batches_done: int) -> Any:
        """Return the loader's state after a number of batches, or None if it has none."""
        if self._held is not None:
            return self._held
        if is_positioned(loader):
            # Workers may have read further; only the run knows how far it is.
            return loader.state_dict(batches_done)
        return loader.state_dict() if is_stateful(loader) else None

    def hold(self, loader: Iterable[Any] | None, batches_done: int) -> None:
        """Keep the current state while a batch is read ahead."""
        self._held = self.state(loader, batches_done)

    def release(self) -> None:
        """Use the loader's current state again."""
        self._held = None

    def restore(self, loader: Any, state: Any, epoch: int, batches_done: int) -> int:
        """Go to the first batch that was not trained on, without reading the others if possible.

        Args:
            loader: The loader.
            state: Its state from the checkpoint, if it had one.
            epoch: The epoch of the checkpoint.
            batches_done: Batches of the epoch before the checkpoint.

        Returns:
            The batches before the position. It differs from `batches_done` if the batch size has
            changed since the checkpoint.
        """
        batches: Iterable[Any] = loader
        set_loader_epoch(loader, epoch)  # first: the state is a position in the epoch
        self.batches_to_skip = batches_done
        if is_positioned(loader):
            if state is not None:
                loader.load_state_dict(state)
            if loader.resumable:
                self.batches_to_skip = 0
                self._is_placed = loader.epoch == epoch
                return loader.batches_done
        elif state is not None and is_stateful(loader):
            self.batches_to_skip = 0
            loader.load_state_dict(state)
            if batches_done == 0:
                # Saved at the end of an epoch, such a loader first yields the rest: nothing.
                next(iter(batches), None)
        return batches_done


def set_loader_epoch(loader: Any, epoch: int) -> None:
    """Pass the epoch to a loader and its sampler: their order may depend on it."""
    for target in (loader, getattr(loader, "sampler", None)):
        if is_epoch_aware(target):
            target.set_epoch(epoch)


def length_of(loader: Any) -> int | None:
    """Return the number of batches of a loader, or None if it has no length."""
    try:
        return len(loader)
    except TypeError:  # a loader over an iterable dataset has __len__, and it raises
        return None
