"""Loaders that people use, and a small loop that can be interrupted, for tests of positions."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from hookline.data import make_loader
from hookline.data.position import DataPosition, length_of
from hookline.rng import restore_rng, rng_state, seed_everything

LENGTH = 26
EPOCHS = 3


class Noisy(Dataset):
    """Samples with random numbers of all three global generators, and their own numbers.

    Attributes:
        reads: How many samples were read in this process.
    """

    def __init__(self) -> None:
        self.reads = 0

    def __len__(self) -> int:
        return LENGTH

    def __getitem__(self, index: int) -> tuple[int, float]:
        self.reads += 1
        if index % 3 == 0:  # only some samples draw
            return index, 0.0
        return index, random.random() + float(np.random.rand()) + float(torch.rand(()))


class Buckets(Sampler):
    """Batches that are shuffled one by one, from the global generators."""

    def __iter__(self) -> Iterator[list[int]]:
        for begin in range(0, LENGTH, 4):
            bucket = list(range(begin, min(begin + 4, LENGTH)))
            random.shuffle(bucket)
            if torch.rand(()) < 0.5:
                bucket.reverse()
            yield bucket

    def __len__(self) -> int:
        return (LENGTH + 3) // 4


class ShuffleBuffer(Sampler):
    """Indices that leave a buffer in random order: each draw depends on all before it."""

    def __iter__(self) -> Iterator[int]:
        buffer = list(range(8))
        for index in range(8, LENGTH):
            yield buffer.pop(random.randrange(len(buffer)))
            buffer.append(index)
        random.shuffle(buffer)
        yield from buffer

    def __len__(self) -> int:
        return LENGTH


class WithOwnGenerators(Sampler):
    """Indices from generators of Python and NumPy that the sampler holds."""

    def __init__(self) -> None:
        self.numpy = np.random.default_rng(5)
        self.legacy = np.random.RandomState(6)
        self.python = random.Random(7)

    def __iter__(self) -> Iterator[int]:
        for _ in range(20):
            draws = int(self.numpy.integers(9)) + int(self.legacy.randint(9))
            yield draws + self.python.randrange(9)

    def __len__(self) -> int:
        return 20


class WithoutLength(Sampler):
    """A shuffled order whose length is not known."""

    def __iter__(self) -> Iterator[int]:
        yield from torch.randperm(LENGTH).tolist()


class WithState(Sampler):
    """A shuffled order that keeps its own position."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.position = 0

    def __iter__(self) -> Iterator[int]:
        if not self.order:
            self.order = torch.randperm(LENGTH).tolist()
        while self.position < LENGTH:
            self.position += 1
            yield self.order[self.position - 1]
        self.order = []
        self.position = 0

    def __len__(self) -> int:
        return LENGTH

    def state_dict(self) -> dict[str, Any]:
        return {"order": self.order, "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.order = state["order"]
        self.position = state["position"]


class Numbers(IterableDataset):
    """A stream with random numbers, which knows the epoch."""

    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[tuple[int, float]]:
        for number in range(LENGTH):
            yield 100 * self.epoch + number, random.random() + float(torch.rand(()))


class NumbersWithState(Numbers):
    """The same stream, which keeps its own position."""

    def __init__(self) -> None:
        super().__init__()
        self.position = 0
        self.reads = 0

    def __iter__(self) -> Iterator[tuple[int, float]]:
        while self.position < LENGTH:
            self.position += 1
            self.reads += 1
            yield 100 * self.epoch + self.position, random.random() + float(torch.rand(()))
        self.position = 0

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]


class StatefulBatches:
    """Batches without a length and with a state, as from torchdata's StatefulDataLoader."""

    def __init__(self) -> None:
        self.position = 0
        self._is_restored = False

    def __iter__(self) -> Iterator[tuple[torch.Tensor, float]]:
        if self.position >= LENGTH and not self._is_restored:
            self.position = 0
        self._is_restored = False
        while self.position < LENGTH:
            self.position += 2
            yield torch.arange(self.position - 2, self.position), random.random()

    def state_dict(self) -> dict[str, int]:
        return {"position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.position = state["position"]
        self._is_restored = True


class Repeated:
    """The same batches in each epoch, and nothing else that a loader may have."""

    def __iter__(self) -> Iterator[tuple[torch.Tensor, float]]:
        for number in range(9):
            yield torch.tensor([number]), 0.0


class CountedNumbers(IterableDataset):
    """A stream in another order in each epoch, whose state its loader knows."""

    def __init__(self) -> None:
        self.next_epoch = 0
        self._state = {"epoch": 0, "samples": 0}

    def __iter__(self) -> Iterator[tuple[int, float]]:
        start = 0
        if self._state["epoch"] >= self.next_epoch:
            self.next_epoch = self._state["epoch"]
            start = self._state["samples"]
        self.next_epoch += 1
        for number in range(start, LENGTH):
            yield 100 * self.next_epoch + number, 0.0

    def state_dict(self, samples: int) -> dict[str, int]:
        state = {"epoch": self.next_epoch - 1, "samples": samples}
        if self._state["epoch"] == state["epoch"]:
            state["samples"] += self._state["samples"]
        return state

    def load_state_dict(self, state: dict[str, int]) -> None:
        self._state = state


class CountingLoader(DataLoader):
    """Passes the number of its samples to the state of its stream, as mosaicml-streaming does."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._samples = 0

    def __iter__(self) -> Iterator[Any]:
        self._samples = 0
        for batch in super().__iter__():
            self._samples += len(batch[0])
            yield batch

    def state_dict(self) -> dict[str, int]:
        return self.dataset.state_dict(self._samples)

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.dataset.load_state_dict(state)


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(7)


def _seed_worker(number: int) -> None:
    """Seed as PyTorch's page on reproducibility recommends."""
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


def _map_style(**options: Any) -> Callable[[int], DataLoader]:
    def make(num_workers: int) -> DataLoader:
        chosen = {name: make_option() for name, make_option in options.items()}
        chosen.setdefault("batch_size", 4)
        if "batch_sampler" in chosen:
            del chosen["batch_size"]
        if not num_workers:
            chosen.pop("persistent_workers", None)
        return DataLoader(Noisy(), num_workers=num_workers, **chosen)

    return make


def _sampler(make: Callable[[], Any], **options: Any) -> Callable[[int], DataLoader]:
    return _map_style(sampler=make, **options)


ONES = torch.ones(LENGTH)
MAP_STYLE: dict[str, Callable[[int], DataLoader]] = {
    "sequential": _map_style(),
    "shuffle": _map_style(shuffle=lambda: True),
    "shuffle, drop_last": _map_style(shuffle=lambda: True, drop_last=lambda: True),
    "shuffle, generator": _map_style(
        shuffle=lambda: True, generator=seeded, worker_init_fn=lambda: _seed_worker
    ),
    "shuffle, persistent_workers": _map_style(
        shuffle=lambda: True, persistent_workers=lambda: True
    ),
    "batch_size=None": _map_style(shuffle=lambda: True, batch_size=lambda: None),
    "RandomSampler, replacement": _sampler(
        lambda: RandomSampler(range(LENGTH), replacement=True, num_samples=70)
    ),
    "RandomSampler, replacement, generator": _sampler(
        lambda: RandomSampler(range(LENGTH), replacement=True, num_samples=70, generator=seeded())
    ),
    "WeightedRandomSampler": _sampler(lambda: WeightedRandomSampler(ONES, LENGTH)),
    "WeightedRandomSampler, generator": _sampler(
        lambda: WeightedRandomSampler(ONES, LENGTH, generator=seeded())
    ),
    "SubsetRandomSampler": _sampler(lambda: SubsetRandomSampler(range(0, LENGTH, 2))),
    "DistributedSampler": _sampler(lambda: DistributedSampler(range(LENGTH), 2, 1)),
    "list as sampler": _sampler(lambda: [3, 1, 4, 1, 5, 9, 2, 6, 5]),
    "own sampler, shuffle buffer": _sampler(ShuffleBuffer),
    "own sampler, own generators": _sampler(WithOwnGenerators),
    "own sampler with state_dict": _sampler(WithState),
    "own sampler without length": _sampler(WithoutLength),
    "own batch sampler, buckets": _map_style(batch_sampler=Buckets),
    "BatchSampler of RandomSampler": _map_style(
        batch_sampler=lambda: BatchSampler(RandomSampler(range(LENGTH)), 5, True)
    ),
}
STREAMS: dict[str, Callable[[int], Any]] = {
    "IterableDataset": lambda num_workers: DataLoader(Numbers(), 4, num_workers=num_workers),
    "IterableDataset with state_dict": lambda num_workers: DataLoader(
        NumbersWithState(), 4, num_workers=num_workers
    ),
}
OTHERS: dict[str, Callable[[], Any]] = {
    "make_loader": lambda: make_loader(Noisy(), 4, shuffle=True),
    "make_loader, stream with state_dict": lambda: make_loader(NumbersWithState(), 4),
    "stateful loader without length": StatefulBatches,
    "stateful loader that passes a count to its stream": lambda: CountingLoader(
        CountedNumbers(), 4
    ),
    "list of batches": lambda: [(torch.tensor([number]), 0.0) for number in range(9)],
    "iterable of batches": Repeated,
    "generator of batches": lambda: iter(Repeated()),
}


class Loop:
    """A loop over a loader, with random numbers drawn in each step, that can be interrupted.

    Attributes:
        trace: What each step saw: the samples, their random numbers, and its own.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.data = DataPosition()
        self.epoch = 0
        self.batches_done = 0
        self.trace: list[list[float]] = []

    def run(self, steps: int | None = None) -> None:
        """Train to the end, or for some steps."""
        while self.epoch < EPOCHS:
            batches = self.data.open_epoch(self.loader, self.epoch, self.batches_done)
            if self.batches_done and self._rng is not None:
                restore_rng(self._rng)
            self._rng = None
            for batch in batches:
                self._step(batch)
                steps = None if steps is None else steps - 1
                if steps == 0:
                    self._finish_epoch(batches)
                    return
            self.epoch += 1
            self.batches_done = 0

    def save(self) -> bytes:
        """Return a checkpoint, as bytes that torch loads without running code."""
        state = {
            "epoch": self.epoch,
            "batches_done": self.batches_done,
            "rng": rng_state(),
            "loader": self.data.state(self.loader, self.batches_done),
        }
        stream = io.BytesIO()
        torch.save(state, stream)
        return stream.getvalue()

    def resume(self, checkpoint: bytes) -> None:
        """Go to the position of a checkpoint."""
        state = torch.load(io.BytesIO(checkpoint), weights_only=True)
        self.epoch = state["epoch"]
        self.batches_done = self.data.restore(
            self.loader, state["loader"], self.epoch, state["batches_done"]
        )
        self._rng = state["rng"]
        if not self.batches_done:
            restore_rng(self._rng)

    _rng: Any = None

    def _step(self, batch: Any) -> None:
        row: list[float] = []
        for samples, noise in batch.values() if isinstance(batch, dict) else [batch]:
            row += [float(number) for number in torch.as_tensor(samples).reshape(-1)]
            row.append(float(torch.as_tensor(noise).double().sum()))
        row += [random.random(), float(np.random.rand()), float(torch.rand(()))]
        self.trace.append(row)
        self.batches_done += 1

    def _finish_epoch(self, batches: Iterator[Any]) -> None:
        """Count the epoch if its last batch was just used and its length is known."""
        if self.batches_done == length_of(self.loader):
            next(batches, None)
            self.epoch += 1
            self.batches_done = 0


def straight(make: Callable[[], Any]) -> list[list[float]]:
    """Return the trace of an uninterrupted run."""
    seed_everything(1)
    loop = Loop(make())
    loop.run()
    return loop.trace


def interrupted(make: Callable[[], Any], cuts: list[int]) -> list[list[float]]:
    """Return the trace of a run that is cut after some steps, each time in another process."""
    seed_everything(1)
    loop = Loop(make())
    trace: list[list[float]] = []
    done = 0
    for number, cut in enumerate(cuts):
        loop.run(cut - done)
        done = cut
        checkpoint = loop.save()
        trace += loop.trace
        seed_everything(100 + number)  # another process has other random numbers
        loop = Loop(make())
        loop.resume(checkpoint)
    loop.run()
    return trace + loop.trace
