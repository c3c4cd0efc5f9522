"""Resume loaders and streams that keep their own position."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from copy import deepcopy
from itertools import chain, islice
from typing import Any

import torch
from torch.utils.data import DataLoader

from hookline.data.fetch import is_deterministic
from hookline.data.generators import END, capture_generators, restore_generators
from hookline.data.protocols import has_state, set_loader_epoch
from hookline.rng import restore_rng, rng_state


def keeps_position(stream: Any) -> bool:
    """Return whether an IterableDataset may keep its position exactly."""
    if has_state(stream):
        return not _has_shuffle_buffer(stream)
    if hasattr(stream, "state_dict"):
        return True  # with arguments, which its loader passes: litdata, mosaicml-streaming
    return not _is_generator(stream)  # else its iterator may keep it


def _is_generator(target: Any) -> bool:
    return inspect.isgeneratorfunction(type(target).__iter__)


def _preserve_rng_once(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield batches; the first one leaves the global generators unchanged."""
    before = rng_state()
    first = next(batches, END)
    restore_rng(before)
    if first is not END:
        yield first
        yield from batches


def _has_shuffle_buffer(stream: Any) -> bool:
    """Return whether a stream of Hugging Face's datasets is shuffled.

    Its state then leaves out the samples in the buffer. Only this attribute shows it.
    """
    part = getattr(stream, "_ex_iterable", None)
    while part is not None:
        if type(part).__name__ == "BufferShuffledExamplesIterable":
            return True
        part = getattr(part, "ex_iterable", None)
    return False


class StatePosition:
    """The position in a loader with `state_dict`, such as torchdata's StatefulDataLoader.

    Args:
        loader: The loader. With a true attribute `is_elastic`, its state is the same on all ranks
            and fits any number of them.
    """

    def __init__(self, loader: Any) -> None:
        self.epoch = 0
        self.batches_done = 0
        self.announcement: str | None = None
        # Such a loader draws a seed when its first batch is read, not when its epoch begins.
        self._begins_late = isinstance(loader, DataLoader) and _is_generator(loader)
        has_own_numbers = self._begins_late or getattr(loader, "num_workers", 0) > 0
        if has_own_numbers and not is_deterministic(loader.dataset):
            self.announcement = (
                "its state has no random numbers, so a resume is exact if its dataset draws none"
            )
        self.is_shared: bool = getattr(loader, "is_elastic", False)
        self._loader = loader
        self._generators: Mapping[str, Any] | None = None  # from a state, for the next epoch
        self._may_be_finished = False  # the state is that of a finished epoch

    def begin_epoch(self) -> Iterator[Any]:
        """Return the batches from the position on."""
        rng = rng_state()
        batches: Iterator[Any] = iter(self._loader)
        generators, self._generators = self._generators, None
        if self._may_be_finished:
            self._may_be_finished = False
            first = next(batches, END)
            if first is not END:
                return chain([first], batches)
            restore_rng(rng)
            batches = iter(self._loader)
        if generators is not None:
            restore_generators(self._loader, generators)
            if self._begins_late and self.batches_done:
                return _preserve_rng_once(batches)
        return batches

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch = epoch
        self.batches_done = 0
        set_loader_epoch(self._loader, epoch)

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Return the state of the loader."""
        return {
            "kind": "state",
            "epoch": self.epoch,
            "batches": batches_done,
            "state": deepcopy(self._loader.state_dict()),
            "generators": capture_generators(self._loader),
        }

    def load_state_dict(self, state: Any) -> None:
        """Go to a position; a state of release 0.1 is that of the loader alone."""
        if not isinstance(state, Mapping) or state.get("kind") != "state":
            state = {"state": state, "generators": {}, "batches": 0}
        self._loader.load_state_dict(deepcopy(state["state"]))
        self.batches_done = state["batches"]
        self._generators = state["generators"]
        self._may_be_finished = not self.batches_done
        if self._may_be_finished:
            iter(self._loader)  # a loader that knows that its epoch is finished leaves it here
            restore_generators(self._loader, state["generators"])


class StreamPosition:
    """The position in a DataLoader whose IterableDataset has `state_dict`, in this process.

    Args:
        loader: The loader, without workers.
    """

    announcement: str | None = None

    def __init__(self, loader: DataLoader[Any]) -> None:
        self.epoch = 0
        self.batches_done = 0
        self.is_shared: bool = getattr(loader.dataset, "is_elastic", False)
        self._loader = loader
        self._dataset: Any = loader.dataset
        self._has_ended = False  # the dataset has no further samples in this epoch

    def begin_epoch(self) -> Iterator[Any]:
        """Return the batches from the position on."""
        if self.batches_done and self._has_ended:
            return iter(())  # the dataset may be at its beginning again
        self._has_ended = False
        samples = iter(self._dataset)
        torch.empty((), dtype=torch.int64).random_(generator=self._loader.generator)
        return self._read(samples)

    def set_epoch(self, epoch: int) -> None:
        """Go to the beginning of an epoch."""
        self.epoch = epoch
        self.batches_done = 0
        set_loader_epoch(self._loader, epoch)

    def state_dict(self, batches_done: int) -> dict[str, Any]:
        """Return the state of the dataset."""
        return {
            "kind": "stream",
            "epoch": self.epoch,
            "batches": batches_done,
            "state": deepcopy(self._dataset.state_dict()),
            "has_ended": self._has_ended,
            "generators": capture_generators(self._loader),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go to a position."""
        self._dataset.load_state_dict(deepcopy(state["state"]))
        self.batches_done = state["batches"]
        self._has_ended = state["has_ended"]
        restore_generators(self._loader, state["generators"])

    def _read(self, samples: Iterator[Any]) -> Iterator[Any]:
        """Yield batches as DataLoader does; it draws a seed for its workers before the first."""
        loader = self._loader
        if loader.batch_size is None:
            yield from map(loader.collate_fn, samples)
            return
        while not self._has_ended:
            batch = list(islice(samples, loader.batch_size))
            self._has_ended = len(batch) < loader.batch_size
            if batch and not (self._has_ended and loader.drop_last):
                yield loader.collate_fn(batch)
