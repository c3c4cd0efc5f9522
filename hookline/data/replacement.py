"""Replace loaders of torch: by resumable ones, and by ones that divide the data among ranks."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch.utils.data import (
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    default_collate,
)
from torch.utils.data.distributed import DistributedSampler

from hookline.data.loader import ResumableLoader
from hookline.data.options import PASSED_ON
from hookline.data.sampler import EpochSampler


def make_resumable(loader: DataLoader[Any], seed: int | None = None) -> ResumableLoader | None:
    """Return a resumable loader with the same data, batches and workers.

    Args:
        loader: The loader.
        seed: The seed of the order, unless the loader has its own generator. None is the seed of
            the Runner that reads the loader, or 0.

    Returns:
        The new loader; None if the order is neither sequential nor simply shuffled.
    """
    if _is_shuffled(loader.sampler):
        shuffle = True
    elif type(loader.sampler) is SequentialSampler:
        shuffle = False
    else:
        return None
    if loader.generator is not None:
        seed = loader.generator.initial_seed()
    return _with_computed_order(loader, shuffle, seed)


def share_loaders(loaders: Any, rank: int, world_size: int, training: bool = False) -> Any:
    """Divide the batches of a loader, or of several by name, among ranks.

    A dataset with fewer samples than ranks is not divided. For evaluation, a loader with a
    DistributedSampler is replaced as well: that sampler repeats samples if the ranks do not divide
    the dataset evenly.

    Args:
        loaders: One loader, several by name, or None.
        rank: The rank of this process.
        world_size: The number of ranks.
        training: Whether the loader is for training; warn if such a loader cannot be divided.

    Returns:
        The loaders for this rank. A loader that cannot be divided is returned unchanged.
    """
    if world_size == 1 or loaders is None:
        return loaders
    if isinstance(loaders, Mapping):
        shared = {}
        for name, loader in loaders.items():
            shared[name] = share_loaders(loader, rank, world_size, training)
        return shared
    loader = loaders
    if type(loader) is DataLoader:
        loader = _replace_for_sharing(loader, training)
    if isinstance(loader, ResumableLoader):
        if loader.sampler.world_size == 1 and loader.sampler.length >= world_size:
            loader.sampler = replace(loader.sampler, rank=rank, world_size=world_size)
    elif training and rank == 0 and not _is_divided(loader):
        logging.getLogger("hookline").warning(
            "train_loader (%s) cannot be divided, so each of the %d ranks trains on all of its "
            "data, unless it yields different data on each rank; pass a DataLoader that is "
            "sequential or shuffled, or one with a DistributedSampler",
            type(loader).__name__, world_size,
        )  # fmt: skip
    return loader


def _replace_for_sharing(loader: DataLoader[Any], training: bool) -> Any:
    if type(loader.sampler) is DistributedSampler and not training:
        replacement = _with_computed_order(loader, shuffle=False, seed=None)
    else:
        replacement = make_resumable(loader)
    return loader if replacement is None else replacement


def _is_shuffled(sampler: Any) -> bool:
    """Return whether a sampler yields each sample once, in random order."""
    if type(sampler) is not RandomSampler or sampler.replacement:
        return False
    return sampler.num_samples == len(sampler.data_source)


def _is_divided(loader: Any) -> bool:
    """Return whether a DistributedSampler divides the data already."""
    batch_sampler = getattr(loader, "batch_sampler", None)
    samplers = (getattr(loader, "sampler", None), getattr(batch_sampler, "sampler", None))
    return any(isinstance(sampler, DistributedSampler) for sampler in samplers)


def _with_computed_order(
    loader: DataLoader[Any], shuffle: bool, seed: int | None
) -> ResumableLoader | None:
    """Return a resumable loader of the same data; None if batches are not consecutive samples."""
    if type(loader) is not DataLoader or type(loader.batch_sampler) is not BatchSampler:
        return None
    if not loader.in_order or not isinstance(loader.batch_size, int):
        return None
    options = {name: getattr(loader, name) for name in PASSED_ON}
    if options["collate_fn"] is default_collate:
        options["collate_fn"] = None
    length = len(loader.dataset)  # type: ignore[arg-type]
    sampler = EpochSampler(length, loader.batch_size, shuffle, seed or 0, loader.drop_last)
    options["has_own_seed"] = seed is not None
    return ResumableLoader(loader.dataset, sampler, loader.num_workers, **options)
