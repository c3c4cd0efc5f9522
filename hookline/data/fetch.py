"""Make batches from sample indices, with random numbers that depend on the samples alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import (
    ConcatDataset,
    Dataset,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    get_worker_info,
)

from hookline.data.arrays import ArrayDataset
from hookline.data.global_rng import GlobalGenerator, global_generators
from hookline.data.seeding import sample_seed

Indices = Tensor | list[int]
BatchReader = Callable[[Indices], list[Tensor]]

DETERMINISTIC = (TensorDataset, list, tuple, range)  # types whose items draw no random numbers


class Fetch(Dataset[Any]):
    """A maker of batches, in this process or, as the dataset of a DataLoader, in its workers.

    Numbers drawn from the global generators depend on seed, epoch and sample alone. For that, a
    generator is seeded for each sample once anything was drawn from it. Until then it
    is checked after each batch. If that batch was the first to draw, it is read again with seeds.

    Nothing is checked if the dataset is known to draw no random numbers: an ArrayDataset without
    augmentation, a TensorDataset, a list, what torch's Subset, ConcatDataset and StackDataset make
    of these, and any other with a true attribute `deterministic`. The same holds for `collate_fn`:
    torch's function, or one with this attribute. Batches of tensors and subsets of them are read
    with one indexing operation. If the attribute of a dataset is false, all generators are seeded
    from the beginning.

    Args:
        dataset: The dataset.
        collate_fn: Makes a batch from a list of samples; torch's function by default.
    """

    def __init__(
        self, dataset: Dataset[Any], collate_fn: Callable[[list[Any]], Any] | None
    ) -> None:
        self.dataset = dataset
        self._collate = collate_fn or default_collate
        is_known = is_deterministic(dataset)
        may_collate_draw = collate_fn is not None and not _is_declared(collate_fn)
        self._is_checked = not is_known or may_collate_draw
        self._unused = global_generators()  # the generators that nothing was drawn from yet
        self._seeded: list[GlobalGenerator] = []
        self._is_watching = False  # in a worker: draws from the unused generators are noticed
        if getattr(dataset, "deterministic", None) is False:
            self._unused, self._seeded = self._seeded, self._unused
        self._is_new = not is_known and not self._seeded  # no sample was read yet
        self._read_batch: BatchReader | None = None
        if collate_fn is None and is_known:
            self._read_batch = make_batch_reader(dataset)

    def plain_batch(self, indices: list[int]) -> Any:
        """Return the batch of some samples, without seeding the global generators."""
        if self._read_batch is not None:
            return self._read_batch(indices)
        return self._collate(_read_samples(self.dataset, indices))

    def batch(self, key: int, indices: Indices, positions: Sequence[int] | None = None) -> Any:
        """Return the batch of some samples.

        Args:
            key: The epoch's key, see `epoch_key`.
            indices: The indices of the samples.
            positions: Their positions in the epoch, if they do not follow from the indices.
        """
        if self._read_batch is not None:
            return self._read_batch(indices)
        chosen = indices.tolist() if isinstance(indices, Tensor) else indices
        if not self._is_checked:
            return self._collate(_read_samples(self.dataset, chosen))
        if get_worker_info() is not None:  # nothing else draws random numbers in a worker
            if not self._is_watching:
                self._is_watching = True
                for generator in self._unused:
                    generator.watch()
            return self._exact_batch(key, chosen, positions)
        for generator in [*self._unused, *self._seeded]:
            generator.keep()
        try:
            return self._exact_batch(key, chosen, positions)
        except BaseException:
            _restore(self._unused)  # the error may have come after a draw
            raise
        finally:
            _restore(self._seeded)

    def __getitems__(self, message: tuple[int, list[int], Sequence[int] | None]) -> Any:
        """Return the batch of one item of the batch sampler; torch's DataLoader calls this."""
        key, indices, positions = message
        return self.batch(key, indices, positions)

    def _exact_batch(self, key: int, indices: list[int], positions: Sequence[int] | None) -> Any:
        """Return a batch; read it again as long as a generator is drawn from for the first time."""
        while True:
            batch = self._collate(self._samples(key, indices, positions or indices))
            if not self._find_draws():
                return batch

    def _samples(self, key: int, indices: list[int], positions: Sequence[int]) -> list[Any]:
        if self._is_new:
            return self._first_samples(key, indices, positions)
        if not self._seeded:
            return _read_samples(self.dataset, indices)
        samples = []
        for index, position in zip(indices, positions, strict=True):
            seed = sample_seed(key, position)
            for generator in self._seeded:
                generator.seed(seed)
            samples.append(self.dataset[index])
        return samples

    def _first_samples(self, key: int, indices: list[int], positions: Sequence[int]) -> list[Any]:
        """Read the first batch; check its first sample, for most datasets draw for all or none."""
        self._is_new = False
        first = self.dataset[indices[0]]
        if self._find_draws():
            return self._samples(key, indices, positions)
        others = indices[1:]
        return [first, *_read_samples(self.dataset, others)] if others else [first]

    def _find_draws(self) -> bool:
        """Seed generators from now on if they have changed, and return whether there are any."""
        changed = [generator for generator in self._unused if generator.has_changed()]
        for generator in changed:
            self._unused.remove(generator)
            self._seeded.append(generator)
        return bool(changed)


def is_deterministic(dataset: Dataset[Any]) -> bool:
    """Return whether a dataset is known to draw no random numbers."""
    if type(dataset) is Subset:
        return is_deterministic(dataset.dataset)
    if type(dataset) is ConcatDataset:
        return all(is_deterministic(part) for part in dataset.datasets)
    if type(dataset) is StackDataset:
        parts = dataset.datasets
        return all(map(is_deterministic, parts.values() if isinstance(parts, dict) else parts))
    return type(dataset) in DETERMINISTIC or _is_declared(dataset)


def _is_declared(target: Any) -> bool:
    """Return whether a dataset or function declares that it draws no random numbers."""
    return bool(getattr(target, "deterministic", False))


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


def _restore(generators: list[GlobalGenerator]) -> None:
    for generator in generators:
        generator.restore()
