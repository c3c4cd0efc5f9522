"""A loader whose epochs have at most some batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from torch.utils.data import DataLoader

from hookline.data.loader import ResumableLoader
from hookline.data.options import PASSED_ON
from hookline.data.position import LoaderPosition, check_partial_epochs, find_position
from hookline.data.protocols import length_of, set_default_seed


class LimitedLoader:
    """The first batches of each epoch of a loader.

    Args:
        loader: The loader.
        max_batches: The batches of an epoch.
    """

    def __init__(self, loader: Any, max_batches: int) -> None:
        self.loader = loader
        self.max_batches = max_batches

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        length = length_of(self.loader)
        return self.max_batches if length is None else min(length, self.max_batches)

    def __iter__(self) -> Iterator[Any]:
        return islice(iter(self.loader), self.max_batches)

    def set_default_seed(self, seed: int) -> None:
        """Pass a seed to the loader if it was made without one."""
        set_default_seed(self.loader, seed)

    def make_position(self) -> LoaderPosition:
        """Return the position in the batches of a run."""
        return LimitedPosition(self)


class LimitedPosition:
    """The position in a LimitedLoader: that of its loader.

    Args:
        loader: The loader.
    """

    def __init__(self, loader: LimitedLoader) -> None:
        check_partial_epochs(loader.loader, "train_loader")
        self._max_batches = loader.max_batches
        self._position = find_position(loader.loader)
        self.announcement = self._position.announcement
        self.is_shared = self._position.is_shared

    @property
    def epoch(self) -> int:
        return self._position.epoch

    @property
    def batches_done(self) -> int:
        return self._position.batches_done

    def begin_epoch(self) -> Iterator[Any]:
        """Return the batches from the position on."""
        left = max(self._max_batches - self.batches_done, 0)
        return islice(self._position.begin_epoch(), left)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self._position.set_epoch(epoch)

    def state_dict(self, batches_done: int) -> Any:
        """Return the position after a number of batches of the epoch."""
        return self._position.state_dict(batches_done)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position."""
        self._position.load_state_dict(state)


def limit_batches(loader: Any, max_batches: int | None) -> Any:
    """Return a loader with at most some batches in an epoch; the same one if it has no more."""
    if loader is None or max_batches is None:
        return loader
    length = length_of(loader)
    if length is not None and length <= max_batches:
        return loader
    return LimitedLoader(loader, max_batches)


def in_dataset_order(loader: Any) -> Any:
    """Return a loader of the same batches in the order of the dataset, if that is possible."""
    if isinstance(loader, ResumableLoader):
        loader.sampler = replace(loader.sampler, shuffle=False, weights=None)
        return loader
    if type(loader) is not DataLoader or loader.batch_size is None:
        return loader
    options = {name: getattr(loader, name) for name in PASSED_ON}
    return DataLoader(loader.dataset, loader.batch_size, drop_last=loader.drop_last, **options)
