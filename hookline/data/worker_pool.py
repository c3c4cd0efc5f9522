"""Read planned batches in the worker processes of torch's DataLoader."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class WorkerPool:
    """Worker processes that read the batches of a stream of plans, in its order.

    Args:
        reader: A dataset whose `__getitems__` takes a plan and returns a batch. Its attribute
            `dataset` is the user's dataset.
        num_workers: The number of workers; with 0, batches are read and pinned in this process.
        worker_init_fn: Called with its number in each worker.
        options: Further options of DataLoader.
    """

    def __init__(
        self,
        reader: Dataset[Any],
        num_workers: int,
        worker_init_fn: Callable[[int], None] | None = None,
        **options: Any,
    ) -> None:
        self._plans = _Plans()
        self._generator = torch.Generator()  # else DataLoader draws from the global generator
        self._newest: object = None
        self._loader: DataLoader[Any] = DataLoader(
            reader,
            batch_sampler=self._plans,  # its items are for the reader
            num_workers=num_workers,
            collate_fn=_identity,
            worker_init_fn=_WorkerInit(worker_init_fn),
            generator=self._generator,
            **options,
        )

    def read(self, plans: Iterator[Any], seed: int) -> Iterator[Any]:
        """Return the batches of some plans; the workers are seeded with `seed` and their number."""
        self._plans.current = plans
        self._generator.manual_seed(seed)
        batches = iter(self._loader)
        if not self._loader.persistent_workers:
            return batches
        # Persistent workers serve one iterator: a second one would get batches of the first.
        token = object()
        self._newest = token
        return _check_each(batches, lambda: self._newest is token)


class _Plans:
    """The batch sampler of the DataLoader: yields the current plans."""

    current: Iterator[Any] = iter(())

    def __iter__(self) -> Iterator[Any]:
        return self.current


class _WorkerInit:
    """A start of workers in which `get_worker_info()` shows the user's dataset, not the reader."""

    def __init__(self, then: Callable[[int], None] | None) -> None:
        self._then = then

    def __call__(self, worker_id: int) -> None:
        info: Any = get_worker_info()
        object.__setattr__(info, "dataset", info.dataset.dataset)
        if self._then is not None:
            self._then(worker_id)


def _identity(batch: Any) -> Any:
    return batch


def _check_each(iterator: Iterator[Any], is_valid: Callable[[], bool]) -> Iterator[Any]:
    for batch in iterator:
        yield batch
        if not is_valid():
            raise RuntimeError(
                "a second iteration of this loader began before the first was over, and its "
                "persistent workers serve only the newest; set persistent_workers to false"
            )
