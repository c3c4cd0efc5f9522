"""Make batches from sample indices, with random numbers that depend on the samples alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    ConcatDataset,
    Dataset,
    Subset,
    TensorDataset,
    default_collate,
    get_worker_info,
)

from hookline.data.arrays import ArrayDataset
from hookline.data.seeding import preserved_rng, seed_sample

Indices = Tensor | list[int]
BatchReader = Callable[[Indices], list[Tensor]]


class Fetch(Dataset[Any]):
    """Makes batches: in this process or, as the dataset of torch's DataLoader, in its workers.

    Each sample is read with its own random numbers, unless the dataset is known to draw none: an
    ArrayDataset without augmentation, a TensorDataset, subsets of these, and any other with a true
    attribute `deterministic`. Batches of the first three are read with one indexing operation.

    Args:
        dataset: The dataset.
        collate_fn: Makes a batch from a list of samples; torch's function by default.
    """

    def __init__(
        self, dataset: Dataset[Any], collate_fn: Callable[[list[Any]], Any] | None
    ) -> None:
        self.dataset = dataset
        self._collate = collate_fn or default_collate
        self._is_seeded = not is_deterministic(dataset)
        self._read_batch: BatchReader | None = None
        if collate_fn is None and not self._is_seeded:
            self._read_batch = make_batch_reader(dataset)

    def batch(self, key: int, indices: Indices) -> Any:
        """Return the batch of some samples.

        Args:
            key: The epoch's key, see `epoch_key`.
            indices: The indices of the samples.
        """
        if self._read_batch is not None:
            return self._read_batch(indices)
        chosen = indices.tolist() if isinstance(indices, Tensor) else indices
        if not self._is_seeded:
            return self._collate(_read_samples(self.dataset, chosen))
        if get_worker_info() is not None:  # nothing else in a worker draws random numbers
            return self._seeded_batch(key, chosen)
        with preserved_rng():
            return self._seeded_batch(key, chosen)

    def __getitems__(self, message: tuple[int, list[int]]) -> Any:
        """Return the batch of one item of the batch sampler; torch's DataLoader calls this."""
        key, indices = message
        return self.batch(key, indices)

    def _seeded_batch(self, key: int, indices: list[int]) -> Any:
        samples = []
        for index in indices:
            seed_sample(key, index)
            samples.append(self.dataset[index])
        return self._collate(samples)  # a collate function may draw random numbers, too


def is_deterministic(dataset: Dataset[Any]) -> bool:
    """Return whether a dataset is known to draw no random numbers."""
    if type(dataset) is Subset:
        return is_deterministic(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return all(is_deterministic(part) for part in dataset.datasets)
    return type(dataset) is TensorDataset or bool(getattr(dataset, "deterministic", False))


def make_batch_reader(dataset: Dataset[Any]) -> BatchReader | None:
    """Return a function that reads a batch at once, or None if the dataset has no tensors."""
    if isinstance(dataset, ArrayDataset):
        return dataset.take
    if type(dataset) is TensorDataset:
        return partial(_read_tensors, dataset.tensors)
    if type(dataset) is Subset:
        inner = make_batch_reader(dataset.dataset)
        if inner is not None:
            members = torch.as_tensor(dataset.indices, device="cpu")
            return partial(_read_subset, inner, members)
    return None


def _read_tensors(tensors: tuple[Tensor, ...], indices: Indices) -> list[Tensor]:
    batch = []
    for tensor in tensors:
        chosen = torch.as_tensor(indices, device=tensor.device)
        batch.append(tensor.index_select(0, chosen))
    return batch


def _read_subset(read: BatchReader, members: Tensor, indices: Indices) -> list[Tensor]:
    return read(members[torch.as_tensor(indices, device="cpu")])


def _read_samples(dataset: Any, indices: list[int]) -> list[Any]:
    if hasattr(dataset, "__getitems__"):
        samples: list[Any] = dataset.__getitems__(indices)
        return samples
    return [dataset[index] for index in indices]
