"""From sample indices to a batch, with random numbers that depend on the samples alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset, default_collate, get_worker_info

from hookline.data.arrays import ArrayDataset
from hookline.data.seeding import preserved_rng, seed_sample

Indices = Tensor | list[int]


class Fetch(Dataset[Any]):
    """Makes whole batches, in this process or, as the data set of torch's DataLoader, in its workers.

    A data set that is known to draw no random numbers is not seeded: an ArrayDataset without augmentation, a TensorDataset,
    subsets of these, and any other with a true attribute `deterministic`. Of the first three a batch is taken in one piece.
    """

    def __init__(self, dataset: Dataset[Any], collate_fn: Callable[[list[Any]], Any] | None) -> None:
        self.dataset = dataset
        self._collate = collate_fn or default_collate
        self._seeded = not is_deterministic(dataset)
        self._in_one_piece = _taker(dataset) if collate_fn is None and not self._seeded else None

    def batch(self, key: int, indices: Indices) -> Any:
        """The collated batch; `key` is the epoch's (`epoch_key`)."""
        if self._in_one_piece is not None:
            return self._in_one_piece(indices)
        chosen = indices.tolist() if isinstance(indices, Tensor) else indices
        if not self._seeded:
            if hasattr(self.dataset, "__getitems__"):
                return self._collate(self.dataset.__getitems__(chosen))
            return self._collate([self.dataset[index] for index in chosen])
        if get_worker_info() is not None:  # a worker's random numbers are nobody else's
            return self._seeded_batch(key, chosen)
        with preserved_rng():
            return self._seeded_batch(key, chosen)

    def __getitems__(self, message: tuple[int, list[int]]) -> Any:
        """What torch's DataLoader calls, with what its batch sampler gave."""
        return self.batch(*message)

    def _seeded_batch(self, key: int, indices: list[int]) -> Any:
        samples = []
        for index in indices:
            seed_sample(key, index)
            samples.append(self.dataset[index])
        return self._collate(samples)  # inside, so that a collate function may draw random numbers as well


def is_deterministic(dataset: Dataset[Any]) -> bool:
    """Whether a data set is known to draw no random numbers."""
    if type(dataset) is Subset:
        return is_deterministic(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return all(is_deterministic(part) for part in dataset.datasets)
    return type(dataset) is TensorDataset or bool(getattr(dataset, "deterministic", False))


def _taker(dataset: Dataset[Any]) -> Callable[[Indices], list[Tensor]] | None:
    if isinstance(dataset, ArrayDataset):
        return dataset.take
    if type(dataset) is TensorDataset:
        return partial(_take_tensors, dataset.tensors)
    if type(dataset) is Subset and (inner := _taker(dataset.dataset)) is not None:
        return partial(_take_subset, inner, torch.as_tensor(dataset.indices, device="cpu"))
    return None


def _take_tensors(tensors: tuple[Tensor, ...], indices: Indices) -> list[Tensor]:
    return [tensor.index_select(0, torch.as_tensor(indices, device=tensor.device)) for tensor in tensors]


def _take_subset(take: Callable[[Indices], list[Tensor]], members: Tensor, indices: Indices) -> list[Tensor]:
    return take(members[torch.as_tensor(indices, device="cpu")])
