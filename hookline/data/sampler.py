"""The samples of each batch, as pure functions of seed, epoch and position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from hookline.data.seeding import epoch_key, order_generator


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
    """

    length: int
    batch_size: int = 32
    shuffle: bool = False
    seed: int = 0
    drop_last: bool = False
    rank: int = 0
    world_size: int = 1

    def batches(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        """Yield the sample indices of each batch from the position `start`. Reads no data."""
        order = self.order(epoch)
        stride = self.batch_size * self.world_size
        count = self.count(start)
        for number in range(1, count + 1):
            end = start + stride if number < count else self.after(start)
            batch = order[start:end]
            yield batch if self.world_size == 1 else self._share(batch)
            start = end

    def order(self, epoch: int) -> Tensor:
        """Return the indices of all samples in the order of an epoch."""
        if not self.shuffle:
            return torch.arange(self.length, device="cpu")
        generator = order_generator(epoch_key(self.seed, epoch))
        return torch.randperm(self.length, generator=generator, device="cpu")

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

    def _share(self, batch: Tensor) -> Tensor:
        share = batch[self.rank :: self.world_size]
        return share if len(share) else batch[self.rank % len(batch)].unsqueeze(0)
