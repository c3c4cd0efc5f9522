"""Prepare the loaders of a training: combine, divide among ranks and limit them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from torch.utils.data import DataLoader

from hookline.data.combined import CombinedLoader
from hookline.data.limited import LimitedLoader, in_dataset_order, limit_batches
from hookline.data.replacement import make_resumable, share_loaders


def prepare_training_data(
    loader: Any,
    seed: int,
    rank: int,
    world_size: int,
    max_batches: int | None = None,
    overfit_batches: int | None = None,
) -> Any:
    """Return the loader that one rank trains on.

    Args:
        loader: A loader, several by name, None, or the result of an earlier call.
        seed: The seed of an order that ranks divide.
        rank: The rank of this process.
        world_size: The number of ranks.
        max_batches: The batches of an epoch; None for all.
        overfit_batches: Use only this many batches, in the order of the dataset.
    """
    prepare = partial(_prepare_one, seed=seed, rank=rank, world_size=world_size)
    if isinstance(loader, LimitedLoader):
        loader = loader.loader
    if isinstance(loader, Mapping):
        loader = CombinedLoader(loader)
    if overfit_batches is not None:
        prepare = partial(prepare, overfit=True)
        max_batches = overfit_batches
    if isinstance(loader, CombinedLoader):
        loader = loader.map(prepare)
    else:
        loader = prepare(loader)
    return limit_batches(loader, max_batches)


def _prepare_one(loader: Any, seed: int, rank: int, world_size: int, overfit: bool = False) -> Any:
    if overfit:
        loader = in_dataset_order(loader)
    if world_size > 1:
        loader = _make_divisible(loader, seed, rank, world_size)
    return share_loaders(loader, rank, world_size, training=True)


def _make_divisible(loader: Any, seed: int, rank: int, world_size: int) -> Any:
    """Replace a plain DataLoader by one that divides batches among ranks, if that is possible."""
    if type(loader) is not DataLoader or loader.generator is not None:
        return loader
    resumable = make_resumable(loader, seed)
    if resumable is None:
        return loader
    if rank == 0:
        logging.getLogger("hookline").info(
            "train_loader: the DataLoader is replaced by a %s with the same data, which divides "
            "every batch among %d ranks; its order depends on the seed (%d)",
            type(resumable).__name__, world_size, seed,
        )  # fmt: skip
    return resumable
