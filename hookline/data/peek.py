"""Read the first batches of a loader without a trace: the next reader gets the same ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from hookline.data.generators import capture_generators, restore_generators
from hookline.data.options import PASSED_ON
from hookline.data.protocols import has_state, is_positioned

# Samplers whose only state is their generator.
KNOWN_SAMPLERS = (
    SequentialSampler,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    DistributedSampler,
)


def can_peek(loader: Any) -> bool:
    """Return whether a few batches can be read without moving the loader's position.

    That is so for loaders of Hookline, lists of batches, and a DataLoader of a map-style dataset
    with a sampler of torch. A stream, or a loader with its own state, may not begin again.
    """
    if is_positioned(loader) or isinstance(loader, Sequence):
        return True
    if type(loader) is not DataLoader or isinstance(loader.dataset, IterableDataset):
        return False
    has_known_order = type(loader.sampler) in KNOWN_SAMPLERS
    return has_known_order and _has_plain_batches(loader) and not has_state(loader.dataset)


@contextmanager
def peeking(loader: Any, count: int) -> Iterator[Iterator[Any]]:
    """Yield the first batches; restore the generators that determine the loader's order.

    Global random numbers are left to the caller. They are drawn as in every epoch.
    """
    states = capture_generators(loader)
    reader = loader
    if type(loader) is DataLoader and loader.persistent_workers:
        reader = _with_own_workers(loader)
    try:
        yield islice(iter(reader), count)
    finally:
        restore_generators(loader, states)


def _has_plain_batches(loader: DataLoader[Any]) -> bool:
    return loader.batch_sampler is None or type(loader.batch_sampler) is BatchSampler


def _with_own_workers(loader: DataLoader[Any]) -> DataLoader[Any]:
    """Return a loader of the same batches whose workers end with its iterator."""
    options = {name: getattr(loader, name) for name in PASSED_ON}
    options["persistent_workers"] = False
    if loader.batch_sampler is None:
        options.update(batch_size=None, sampler=loader.sampler)
    else:
        options["batch_sampler"] = loader.batch_sampler
    return DataLoader(
        loader.dataset, num_workers=loader.num_workers, generator=loader.generator, **options
    )
