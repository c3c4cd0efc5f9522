"""The samplers of a DataLoader: which of them draws the indices, when, and from what."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

# Samplers of torch that draw all indices of an epoch at once, or from their own generator.
DRAWS_AT_ONCE = (SubsetRandomSampler, WeightedRandomSampler, DistributedSampler)


def index_sampler(loader: DataLoader[Any]) -> Any:
    """Return the sampler whose items are counted: of single indices, if torch makes the batches."""
    batch_sampler = loader.batch_sampler
    if type(batch_sampler) is BatchSampler:
        return batch_sampler.sampler
    return loader.sampler if batch_sampler is None else batch_sampler


def all_samplers(loader: DataLoader[Any]) -> list[Any]:
    """Return the batch sampler and the samplers below it; some may be the same object."""
    return [loader.batch_sampler, index_sampler(loader), loader.sampler]


def fixed_batch_size(loader: DataLoader[Any]) -> int | None:
    """Return the indices in a batch; None if the sampler makes the batches itself."""
    batch_sampler = loader.batch_sampler
    return batch_sampler.batch_size if type(batch_sampler) is BatchSampler else None


def draws_at_once(sampler: Any) -> bool:
    """Return whether all indices of an epoch may be drawn at its beginning."""
    if type(sampler) is RandomSampler:
        return not sampler.replacement and sampler.num_samples <= len(sampler.data_source)
    return type(sampler) in DRAWS_AT_ONCE


def draws_from_own_generator(stream: Any) -> bool:
    """Return whether a sampler, after its first index, draws from no global generator."""
    known = (SequentialSampler, RandomSampler, *DRAWS_AT_ONCE)
    return type(stream) in known or isinstance(stream, (Sequence, torch.Tensor))


def stateful_sampler(loader: DataLoader[Any]) -> Any:
    """Return the batch sampler or sampler that keeps its own position, if one does."""
    for sampler in all_samplers(loader):
        if hasattr(sampler, "state_dict") and hasattr(sampler, "load_state_dict"):
            return sampler
    return None


def lookahead(loader: DataLoader[Any]) -> int:
    """Return how many batches of indices a DataLoader draws before they are used."""
    return max(1, loader.num_workers * (loader.prefetch_factor or 2))
