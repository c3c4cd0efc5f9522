"""The random numbers of persistent workers, which continue from one epoch to the next.

New workers take a seed from the random numbers of training. A resumed run starts workers that the
run before it had already: they take no seed, and begin with the states in the checkpoint.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, TypeVar

import torch
from torch.utils.data import get_worker_info

from hookline.dist import current_world
from hookline.rng import restore_rng, rng_state

ROW_BYTES = 16384  # more than the stored generators of Python, NumPy and torch
HEADER_BYTES = 8

log = logging.getLogger("hookline")

Loader = TypeVar("Loader")


class WorkerGenerators:
    """The generators of a loader's workers, in memory that all processes share.

    Each worker writes its state after each batch. Between two epochs the workers wait, and the
    memory holds the states with which the next epoch begins. An object is the `collate_fn` of its
    loader.
    """

    def __init__(self, loader: Any) -> None:
        self._collate = loader.collate_fn
        self._seed_worker = loader.worker_init_fn
        self._is_restoring = False
        self._rows: torch.Tensor = torch.zeros(loader.num_workers, ROW_BYTES, dtype=torch.uint8)
        self._rows.share_memory_()  # type: ignore[no-untyped-call]

    def __call__(self, samples: Any) -> Any:
        """Collate samples in a worker, and write the state of its generators."""
        batch = self._collate(samples)
        worker = get_worker_info()
        if worker is not None:
            _write(self._rows[worker.id])
        return batch

    def start_worker(self, worker_id: int) -> None:
        """Seed a new worker. In a resumed epoch, restore its generators after that."""
        if self._seed_worker is not None:
            self._seed_worker(worker_id)
        if self._is_restoring:
            _restore(self._rows[worker_id])

    def capture(self) -> torch.Tensor:
        """Return the states after the last batches."""
        return self._rows.clone()

    def prepare(self, states: torch.Tensor | None) -> None:
        """Let new workers begin with the states of a checkpoint, if there are any."""
        self._is_restoring = states is not None and states.shape == self._rows.shape
        if self._is_restoring:
            assert states is not None
            self._rows.copy_(states)
            return
        self._rows.zero_()
        if states is not None and len(states):
            log.warning(
                "the checkpoint has the random numbers of another number of workers, so this "
                "resume is not exact"
            )


def follow_workers(loader: Loader) -> Loader:
    """Return a loader of the same batches that follows the generators of its persistent workers.

    All other loaders are returned themselves, and so is each one in a distributed job: a checkpoint
    holds the states of one rank.
    """
    is_new = _is_persistent(loader) and capture_workers(loader) is None
    if not is_new or generators_of(loader) is not None or current_world().size > 1:
        return loader
    followed: Any = copy(loader)
    generators = WorkerGenerators(loader)
    followed.collate_fn = generators
    followed.worker_init_fn = generators.start_worker
    return followed  # type: ignore[no-any-return]


def generators_of(loader: Any) -> WorkerGenerators | None:
    """Return the generators of a loader's workers, or None if they are not followed."""
    collate = getattr(loader, "collate_fn", None)
    return collate if isinstance(collate, WorkerGenerators) else None


def capture_workers(loader: Any) -> torch.Tensor | None:
    """Return the states of a loader's persistent workers, or None if none were started.

    The result is empty if their generators are not followed.
    """
    if not _is_persistent(loader) or loader._iterator is None:  # Hooks set it to None, too.
        return None
    generators = generators_of(loader)
    return torch.empty(0) if generators is None else generators.capture()


@contextmanager
def continuing_workers(loader: Any, states: torch.Tensor | None) -> Iterator[torch.Tensor | None]:
    """Let workers that start in this context continue those of a checkpoint.

    Args:
        loader: The loader.
        states: The result of `capture_workers` before the checkpoint.

    Yields:
        The states with which the workers begin: those of running workers, or else `states`.
    """
    running = capture_workers(loader)
    if running is not None or not _is_persistent(loader):
        yield running
        return
    generators = generators_of(loader)
    if generators is not None:
        generators.prepare(states)
    generator = loader.generator
    if states is not None:
        loader.generator = torch.Generator()  # The seed of the workers is drawn from it.
    try:
        yield states
    finally:
        loader.generator = generator


def _is_persistent(loader: Any) -> bool:
    return getattr(loader, "persistent_workers", False) is True


def _write(row: torch.Tensor) -> None:
    file = io.BytesIO()
    torch.save(rng_state(), file)
    content = torch.frombuffer(file.getbuffer(), dtype=torch.uint8)
    end = HEADER_BYTES + len(content)
    row[HEADER_BYTES:end] = content
    row[:HEADER_BYTES].view(torch.int64).fill_(len(content))


def _restore(row: torch.Tensor) -> None:
    size = int(row[:HEADER_BYTES].view(torch.int64))
    if size > 0:  # Otherwise the worker had no batch before the checkpoint.
        content = bytes(row[HEADER_BYTES : HEADER_BYTES + size].numpy())
        restore_rng(torch.load(io.BytesIO(content), weights_only=True))
