"""`mmengine.dataset`: samplers and collate functions."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence, Sized
from typing import Any

import numpy as np
import torch
from torch.utils.data import Sampler, default_collate

from hookline.compat.missing import not_covered
from hookline.compat.mmengine import ADVICE
from hookline.compat.mmengine.dist import get_dist_info, sync_random_seed
from hookline.compat.mmengine.registry import DATA_SAMPLERS, FUNCTIONS


class _Sampler(Sampler[int]):
    """The base of samplers, which split the samples over the ranks.

    Args:
        dataset: The data set.
        shuffle: Shuffle the samples.
        seed: The seed of the order; drawn at random by default, the same on all ranks.
    """

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int | None = None) -> None:
        self.rank, self.world_size = get_dist_info()
        self.dataset = dataset
        self.shuffle = shuffle
        self.seed = sync_random_seed() if seed is None else seed
        self.epoch = 0
        # Samples are repeated so that all ranks have the same number.
        self.num_samples = math.ceil(len(dataset) / self.world_size)
        self.total_size = self.num_samples * self.world_size

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def _order(self, generator: torch.Generator) -> list[int]:
        count = len(self.dataset)
        if self.shuffle:
            return torch.randperm(count, generator=generator).tolist()
        return list(range(count))


@DATA_SAMPLERS.register_module()
class DefaultSampler(_Sampler):
    """Yields each sample once an epoch. The order depends only on the seed and the epoch."""

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed + self.epoch)
        indices = self._order(generator)
        indices = (indices * int(self.total_size / len(indices) + 1))[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.world_size])

    def __len__(self) -> int:
        return self.num_samples


@DATA_SAMPLERS.register_module()
class InfiniteSampler(_Sampler):
    """Yields samples without end, for training by iterations. The order has no epochs."""

    def __init__(self, dataset: Sized, shuffle: bool = True, seed: int | None = None) -> None:
        super().__init__(dataset, shuffle, seed)
        self.indices = itertools.islice(self._infinite_indices(), self.rank, None, self.world_size)

    def _infinite_indices(self) -> Iterator[int]:
        generator = torch.Generator().manual_seed(self.seed)
        while True:
            yield from self._order(generator)

    def __iter__(self) -> Iterator[int]:
        yield from self.indices

    def __len__(self) -> int:
        return len(self.dataset)


def worker_init_fn(worker_id: int, num_workers: int, rank: int, seed: int) -> None:
    """Seed a worker process of a loader."""
    worker_seed = num_workers * rank + worker_id + seed
    np.random.seed(worker_seed)
    random.seed(worker_seed)
    torch.manual_seed(worker_seed)


@FUNCTIONS.register_module()  # type: ignore[untyped-decorator]
def pseudo_collate(data_batch: Sequence[Any]) -> Any:
    """Combine samples field by field to lists, without stacking tensors."""
    first = data_batch[0]
    if isinstance(first, Mapping):
        return {key: pseudo_collate([sample[key] for sample in data_batch]) for key in first}
    if isinstance(first, (list, tuple)):
        return [pseudo_collate(values) for values in zip(*data_batch, strict=True)]
    return data_batch


FUNCTIONS.register_module(module=default_collate)

__getattr__ = not_covered(__name__, advice=ADVICE)
