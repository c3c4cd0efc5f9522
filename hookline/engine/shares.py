"""Results of an evaluation in which each process has a share of the data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.utils.data.distributed import DistributedSampler

from hookline.dist import World

if TYPE_CHECKING:
    from hookline.engine.runner import BaseRunner

NOTHING = object()


def shared(loader: Any) -> bool:
    """Whether a loader gives each process a share of its data, and not all of it."""
    sampler = getattr(loader, "sampler", None)
    return getattr(sampler, "world_size", 1) > 1 or isinstance(sampler, DistributedSampler)


def order_seed(loader: Any) -> int | None:
    """The seed of an order of which each process takes its share, so that all must have the same; None if there is none."""
    sampler = getattr(loader, "sampler", None)
    return getattr(sampler, "seed", None) if shared(loader) and getattr(sampler, "shuffle", False) else None


def batch_share(runner: BaseRunner) -> float:
    """This process's part of the batch it trains on, compared with an even division; not 1 at the end of an epoch alone."""
    if runner.inner_iter + 1 != runner.epoch_length:
        return 1.0
    share = getattr(runner.train_loader, "last_share", None)
    return 1.0 if share is None else float(share())


def syncs_itself(metric: Any) -> bool:
    """Whether `compute()` takes in what all processes have seen: ours does, and that of torchmetrics."""
    return getattr(metric, "over_all_processes", False) or hasattr(metric, "sync_on_compute")


def mean_over(world: World, value: Any, samples: int) -> Any:
    """The mean of what each process has measured, weighted by samples."""
    if world.size == 1:
        return value
    if isinstance(value, Mapping):
        return {name: mean_over(world, item, samples) for name, item in value.items()}
    own = torch.as_tensor(value, dtype=torch.float64).cpu()
    counted = own * samples if samples else torch.zeros_like(own)  # of no samples a metric may say anything, also that it is no number
    sums = world.sum([float(samples), *counted.flatten().tolist()])
    return (torch.tensor(sums[1:]) / sums[0]).reshape(own.shape)


def gather_in_order(batches: list[list[Any]], loader: Any, world: World) -> list[Any]:
    """The predictions for all samples, in the order of the data set, on every process; each has those of its share, by batch."""
    if world.size == 1:
        return list(chain.from_iterable(batches))
    everyone: list[Any] = [None] * world.size
    dist.all_gather_object(everyone, batches)  # from this run's own processes, and never from a file
    if isinstance(getattr(loader, "sampler", None), DistributedSampler):
        everyone = [[list(chain.from_iterable(each))] for each in everyone]  # it deals out samples one by one, over the whole set
    ordered: list[Any] = []
    for shares in zip_longest(*everyone, fillvalue=()):
        for samples in zip_longest(*shares, fillvalue=NOTHING):
            ordered += [sample for sample in samples if sample is not NOTHING]
    return ordered[: len(loader.dataset)]
