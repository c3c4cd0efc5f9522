"""Combine results of an evaluation in which each rank has a part of the data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain, zip_longest
from typing import Any

import torch
import torch.distributed as dist
from torch.utils.data.distributed import DistributedSampler

from hookline.dist.world import World
from hookline.errors import HooklineError, Suggestion

MISSING = object()


def is_sharded(loader: Any) -> bool:
    """Return whether a loader gives each rank a part of its data."""
    sampler = getattr(loader, "sampler", None)
    return getattr(sampler, "world_size", 1) > 1 or isinstance(sampler, DistributedSampler)


def order_seed(loader: Any) -> int | None:
    """Return the seed of a shuffled order that ranks divide, which must be the same on all."""
    sampler = getattr(loader, "sampler", None)
    if not is_sharded(loader) or not getattr(sampler, "shuffle", False):
        return None
    return getattr(sampler, "seed", None)


def batch_share(runner: Any) -> float:
    """Return the size of this rank's part of the batch relative to an even division.

    It is 1 except for the last batch of an epoch.
    """
    if runner.inner_iter + 1 != runner.epoch_length:
        return 1.0
    last_share = getattr(runner.train_loader, "last_share", None)
    if last_share is None:
        return 1.0
    return float(last_share())


def has_own_sync(metric: Any) -> bool:
    """Return whether `compute()` covers all ranks, as in our metrics and torchmetrics."""
    return getattr(metric, "over_all_processes", False) or hasattr(metric, "sync_on_compute")


def mean_over_ranks(world: World, value: Any, samples: int) -> Any:
    """Return the mean of a result over all ranks, weighted by samples."""
    if world.size == 1:
        return value
    if isinstance(value, Mapping):
        return {name: mean_over_ranks(world, item, samples) for name, item in value.items()}
    own = torch.as_tensor(value, dtype=torch.float64).cpu()
    weighted = torch.zeros_like(own)
    if samples:  # without samples, the value may be NaN
        weighted = own * samples
    sums = world.sum([float(samples), *weighted.flatten().tolist()])
    return (torch.tensor(sums[1:]) / sums[0]).reshape(own.shape)


def combine_results(world: World, results: Mapping[str, float], loader: Any) -> dict[str, float]:
    """Return the metrics that a function measured on each rank, the same on all ranks.

    If each rank had a share of the data, a metric is the mean weighted by samples. Otherwise all
    ranks had the whole data, and the metrics are those of rank 0.
    """
    if world.size == 1:
        return dict(results)
    sampler: Any = getattr(loader, "sampler", None)
    is_share = is_sharded(loader)
    samples = len(sampler) if is_share and hasattr(sampler, "__len__") else None
    texts = world.gather_text(json.dumps([samples, dict(results)]))
    answers = [json.loads(text) for text in texts]
    for rank, (_, values) in enumerate(answers):
        if values.keys() != answers[0][1].keys():
            raise HooklineError(
                f"test_fn returned other metrics on rank {rank} than on rank 0: "
                f"{', '.join(values) or 'none'} and {', '.join(answers[0][1]) or 'none'}",
                suggestion=Suggestion(advice="return the same names on all ranks"),
            )
    if not is_share:
        return dict(answers[0][1])
    if any(count is None for count, _ in answers):
        advice = "return predictions from test_fn, or give the loader's sampler a length"
        raise HooklineError(
            "cannot average the metrics of test_fn over the ranks: their samples are not known",
            suggestion=Suggestion(advice=advice),
        )
    total = sum(count for count, _ in answers)
    combined = {}
    for name in answers[0][1]:
        parts = [count * values[name] for count, values in answers if count]
        combined[name] = sum(parts) / total if total else float("nan")
    return combined


def gather_in_order(batches: list[list[Any]], loader: Any, world: World) -> list[Any]:
    """Return the predictions of all ranks in the order of the dataset.

    Args:
        batches: The predictions of this rank, by batch.
        loader: The loader whose sampler divided the data.
        world: The ranks.
    """
    if world.size == 1:
        return list(chain.from_iterable(batches))
    by_rank: list[Any] = [None] * world.size
    # Pickled objects, but only between the processes of this run.
    dist.all_gather_object(by_rank, batches)
    if isinstance(getattr(loader, "sampler", None), DistributedSampler):
        # It deals out single samples, over the whole set.
        by_rank = [[list(chain.from_iterable(each))] for each in by_rank]
    ordered: list[Any] = []
    for shares in zip_longest(*by_rank, fillvalue=()):
        for samples in zip_longest(*shares, fillvalue=MISSING):
            ordered += [sample for sample in samples if sample is not MISSING]
    return ordered[: len(loader.dataset)]
