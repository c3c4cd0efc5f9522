"""Loaders that give a few of their batches: the first two and the last."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from hookline.data.loader import ResumableLoader
from hookline.data.sampler import EpochSampler

FIRST = 2


@dataclass(frozen=True)
class FewBatches(EpochSampler):
    """The first batches of an epoch and its last one, in the order and size that they will have."""

    first: int = FIRST

    def batches(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        whole = self._whole()
        chosen = list(itertools.islice(whole.batches(epoch), self.first))
        if whole.count() > self.first:
            chosen.append(next(whole.batches(epoch, whole.after(0, whole.count() - 1))))
        return iter(chosen[self._done(start) :])

    def count(self, start: int = 0) -> int:
        return max(min(self._whole().count(), self.first + 1) - self._done(start), 0)

    def after(self, start: int, batches: int = 1) -> int:
        """A position counts whole batches here, of which the last may be smaller."""
        done = self._done(start) + batches
        return self.length if done >= self.count(0) and not self.drop_last else done * self.batch_size * self.world_size

    def _whole(self) -> EpochSampler:
        return EpochSampler(**{field.name: getattr(self, field.name) for field in dataclasses.fields(EpochSampler)})

    def _done(self, start: int) -> int:
        return -(-start // (self.batch_size * self.world_size))


class Beginning:
    """The first batches of a loader that is not ours."""

    def __init__(self, loader: Any, count: int) -> None:
        self.loader, self._count = loader, count

    def __iter__(self) -> Iterator[Any]:
        return itertools.islice(iter(self.loader), self._count)

    def __getattr__(self, name: str) -> Any:
        if name == "__len__":
            raise AttributeError(name)
        return getattr(self.loader, name)


def shortened(loader: Any, first: int = FIRST) -> Any:
    """The same data, workers and order, few batches; of several loaders by name, each."""
    if loader is None:
        return None
    if isinstance(loader, Mapping) and "dataset" not in loader:
        return {name: shortened(each, first) for name, each in loader.items()}
    if not isinstance(loader, ResumableLoader):
        return Beginning(loader, first)
    few = copy.copy(loader)
    fields = {field.name: getattr(loader.sampler, field.name) for field in dataclasses.fields(EpochSampler)}
    few.sampler = FewBatches(**fields, first=first)
    return few


def each_loader(loader: Any) -> Iterable[Any]:
    if loader is None:
        return []
    return list(loader.values()) if isinstance(loader, Mapping) else [loader]


def length(loader: Any) -> int | None:
    """The batches of a loader, or of several together; None if they do not tell."""
    try:
        return sum(len(each) for each in each_loader(loader))
    except TypeError:
        return None
