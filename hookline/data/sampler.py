"""The samples of each batch, as pure functions of seed, epoch and position."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from hookline.data.permutation import FeistelPermutation
from hookline.data.seeding import epoch_key, order_generator, order_key

ShuffleMethod = Literal["auto", "randperm", "feistel"]

RANDPERM_LIMIT = 2**24  # samples; their order takes 128 MB, and half a second at each start
CHUNK = 2**15  # samples whose order is computed at once: a fraction of a millisecond


@dataclass(frozen=True)
class EpochSampler:
    """The batches of one rank, for any epoch and from any position in it.

    A position is the number of samples of the epoch that all ranks together have consumed. It
    determines the remaining samples, whatever the batch size and the number of ranks were before.
    Every remaining sample comes exactly once, and every rank gets the same number of batches. With
    several ranks, the last batch of an epoch may have one sample more on some of them. A rank
    repeats a sample only if fewer samples than ranks are left.

    Args:
        length: The number of samples of an epoch.
        batch_size: The batch size of one rank.
        shuffle: Whether the order is random.
        seed: The seed of the order.
        drop_last: Whether a last batch that is not full is dropped.
        rank: The rank of this process.
        world_size: The number of ranks.
        shuffle_method: How a random order is made. `randperm` draws the whole order of an epoch
            with `torch.randperm`. `feistel` computes it from the position, with a little memory
            however many samples there are. `auto` is `feistel` for more than 2**24 samples.
        weights: The weight of each sample. The samples of an epoch are then drawn with replacement,
            each with a probability in proportion to its weight.
    """

    length: int
    batch_size: int = 32
    shuffle: bool = False
    seed: int = 0
    drop_last: bool = False
    rank: int = 0
    world_size: int = 1
    shuffle_method: ShuffleMethod = "auto"
    weights: Tensor | None = field(default=None, compare=False, repr=False)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        """Yield the sample indices of each batch from the position `start`. Reads no data."""
        count = self.count(start)
        if count == 0:
            return
        find_samples = self._order(epoch)
        own = range(start + self.rank, self.after(start, count), self.world_size)
        last = (count - 1) * self.batch_size  # where the last batch begins, which may be irregular
        chunk = max(CHUNK // self.batch_size, 1) * self.batch_size
        for begin in range(0, last, chunk):
            samples = find_samples(own[begin : min(begin + chunk, last)])
            yield from samples.split(self.batch_size)  # type: ignore[no-untyped-call]
        yield find_samples(own[last:] or self._repeated(start))

    def positions(self, start: int = 0) -> Iterator[range]:
        """Yield the positions in the epoch of the samples of each batch."""
        count = self.count(start)
        own = range(start + self.rank, self.after(start, count), self.world_size)
        for number in range(count):
            begin = number * self.batch_size
            is_last = number == count - 1
            chosen = own[begin:] if is_last else own[begin : begin + self.batch_size]
            yield chosen or self._repeated(start)

    def find_method(self) -> Literal["randperm", "feistel"]:
        """Return the method of a random order, which is never `auto`."""
        if self.shuffle_method != "auto":
            return self.shuffle_method
        return "feistel" if self.length > RANDPERM_LIMIT else "randperm"

    def count(self, start: int = 0) -> int:
        """Return the number of batches from a position to the end of the epoch."""
        full, rest = divmod(self.length - start, self.batch_size * self.world_size)
        if self.drop_last or rest == 0 or (full and rest < self.world_size):
            return full
        return full + 1

    def after(self, start: int, batches: int = 1) -> int:
        """Return the position after some batches, at most the end of the epoch."""
        left = self.count(start)
        if 0 < left <= batches and not self.drop_last:
            return self.length
        return start + min(batches, left) * self.batch_size * self.world_size

    def __len__(self) -> int:
        """Return the number of samples that this rank reads in an epoch."""
        last = len(range(self.rank, self._last_size(0), self.world_size))
        return (self.count() - 1) * self.batch_size + last

    def last_share(self, start: int = 0) -> float:
        """Return this rank's part of the epoch's last batch, relative to an even division of it."""
        size = self._last_size(start)
        return len(range(self.rank, size, self.world_size)) * self.world_size / size

    def last_weight(self, start: int = 0) -> float:
        """Return the size of the epoch's last batch over all ranks, relative to a full one."""
        return self._last_size(start) / (self.batch_size * self.world_size)

    def _last_size(self, start: int) -> int:
        begin = start + (self.count(start) - 1) * self.batch_size * self.world_size
        return self.after(begin) - begin

    def _repeated(self, start: int) -> range:
        """Return the position of another rank's sample, for a last batch that has none."""
        size = self._last_size(start)
        position = self.after(start, self.count(start)) - size + self.rank % size
        return range(position, position + 1)

    def _order(self, epoch: int) -> Callable[[range], Tensor]:
        """Return the function from positions of an epoch to samples."""
        key = epoch_key(self.seed, epoch)
        if self.weights is not None:
            return _find_drawn(_draw_weighted(self.weights, order_generator(key)))
        if not self.shuffle:
            return _find_sequential
        if self.find_method() == "feistel":
            permutation = FeistelPermutation(self.length, order_key(key))
            return lambda positions: _find_permuted(permutation, positions)
        order = torch.randperm(self.length, generator=order_generator(key), device="cpu")
        return _find_drawn(order)


def _find_drawn(order: Tensor) -> Callable[[range], Tensor]:
    return lambda positions: order[positions.start : positions.stop : positions.step]


def _draw_weighted(weights: Tensor, generator: torch.Generator) -> Tensor:
    """Draw as many samples as there are weights; torch.multinomial has a limit of 2**24."""
    sums = weights.double().cumsum(0)
    numbers = torch.rand(len(weights), generator=generator, dtype=torch.float64) * sums[-1]
    last = torch.nonzero(weights)[-1, 0]  # a rounded number may reach the sum of all weights
    return torch.searchsorted(sums, numbers, right=True).clamp_max(last)


def _find_sequential(positions: range) -> Tensor:
    return torch.arange(positions.start, positions.stop, positions.step, device="cpu")


def _find_permuted(permutation: FeistelPermutation, positions: range) -> Tensor:
    numbers = np.arange(positions.start, positions.stop, positions.step, dtype=np.int64)
    return torch.from_numpy(permutation(numbers))
