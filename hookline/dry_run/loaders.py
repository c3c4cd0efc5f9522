"""Loaders that yield a few of their batches."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from hookline.data.loader import ResumableLoader
from hookline.data.sampler import EpochSampler

FIRST_BATCHES = 2


def shorten_loader(loader: Any, first: int = FIRST_BATCHES) -> Any:
    """Return a loader of the same data, in the same order, with few batches.

    A ResumableLoader keeps its first batches and its last one, which may be smaller. Other
    loaders keep their first batches. A mapping of loaders is shortened loader by loader.
    """
    if loader is None:
        return None
    if isinstance(loader, Mapping) and "dataset" not in loader:
        return {name: shorten_loader(each, first) for name, each in loader.items()}
    if not isinstance(loader, ResumableLoader):
        return FirstBatches(loader, first)
    short = copy.copy(loader)
    short.sampler = FirstAndLastBatches(**_sampler_fields(loader.sampler), first=first)
    return short


def list_loaders(loader: Any) -> list[Any]:
    """Return a loader, or those of a mapping, as a list."""
    if loader is None:
        return []
    return list(loader.values()) if isinstance(loader, Mapping) else [loader]


def count_batches(loader: Any) -> int | None:
    """Return the number of batches of all loaders, or None if one has no length."""
    try:
        return sum(len(each) for each in list_loaders(loader))
    except TypeError:
        return None


class FirstBatches:
    """The first batches of a loader. Other attributes are those of the loader.

    Special methods are not passed on: the result has no length, and is no iterator.
    """

    # A dry run reports loaders that cannot resume itself, under their own names.
    announcement: str | None = None

    def __init__(self, loader: Any, count: int) -> None:
        self.loader = loader
        self._count = count

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self.loader), self._count)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.loader, name)


@dataclass(frozen=True)
class FirstAndLastBatches(EpochSampler):
    """The first batches of an epoch and its last one, with the indices that they have in the epoch.

    A position counts full batches; the last batch may be smaller.
    """

    first: int = FIRST_BATCHES

    def batches(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        whole = EpochSampler(**_sampler_fields(self))
        chosen = list(itertools.islice(whole.batches(epoch), self.first))
        if whole.count() > self.first:
            last_position = whole.after(0, whole.count() - 1)
            chosen.append(next(whole.batches(epoch, last_position)))
        return iter(chosen[self._batches_before(start) :])

    def count(self, start: int = 0) -> int:
        whole = EpochSampler(**_sampler_fields(self))
        total = min(whole.count(), self.first + 1)
        return max(total - self._batches_before(start), 0)

    def after(self, start: int, batches: int = 1) -> int:
        done = self._batches_before(start) + batches
        if done >= self.count(0) and not self.drop_last:
            return self.length
        return done * self.batch_size * self.world_size

    def _batches_before(self, position: int) -> int:
        full_batch = self.batch_size * self.world_size
        return -(-position // full_batch)  # rounded up


def _sampler_fields(sampler: EpochSampler) -> dict[str, Any]:
    """Return the fields of EpochSampler, without those of a subclass."""
    names = [field.name for field in dataclasses.fields(EpochSampler)]
    return {name: getattr(sampler, name) for name in names}
