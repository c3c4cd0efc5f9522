"""Which samples make up each batch: pure functions of (seed, epoch, position)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from hookline.data.seeding import epoch_key, order_generator


@dataclass(frozen=True)
class EpochSampler:
    """The batches of one rank, for any epoch and from any position on.

    A position is the number of an epoch's samples that all ranks together have consumed. It says what is left whatever the
    batch size or the number of ranks were before: every remaining sample comes exactly once, and every rank gets
    the same number of batches. `batch_size` is one rank's; with several ranks the last batch of an epoch may
    have one sample more or less on some of them. Only where fewer samples than ranks are left do some ranks repeat one.
    """

    length: int
    batch_size: int = 32
    shuffle: bool = False
    seed: int = 0
    drop_last: bool = False
    rank: int = 0
    world_size: int = 1

    def batches(self, epoch: int, start: int = 0) -> Iterator[Tensor]:
        """The sample indices of each batch from position `start` on; nothing is read to get there."""
        order, count = self.order(epoch), self.count(start)
        for number in range(1, count + 1):
            end = start + self._stride if number < count else self.after(start)
            batch = order[start:end]
            yield batch if self.world_size == 1 else self._share(batch)
            start = end

    def order(self, epoch: int) -> Tensor:
        """The indices of all samples in the order of an epoch."""
        if not self.shuffle:
            return torch.arange(self.length, device="cpu")
        return torch.randperm(self.length, generator=order_generator(epoch_key(self.seed, epoch)), device="cpu")

    def count(self, start: int = 0) -> int:
        """How many batches there are from a position on."""
        full, rest = divmod(self.length - start, self._stride)
        if self.drop_last or rest == 0 or (full and rest < self.world_size):
            return full
        return full + 1

    def after(self, start: int, batches: int = 1) -> int:
        """The position some batches later, or that of the epoch's end."""
        left = self.count(start)
        if 0 < left <= batches and not self.drop_last:
            return self.length
        return start + min(batches, left) * self._stride

    def last_share(self, start: int = 0) -> float:
        """This rank's part of an epoch's last batch, from a position on, compared with an even division of it."""
        size = self._last_size(start)
        return len(range(self.rank, size, self.world_size)) * self.world_size / size

    def last_weight(self, start: int = 0) -> float:
        """How large an epoch's last batch is, from a position on and over all ranks, compared with a full one."""
        return self._last_size(start) / self._stride

    def _last_size(self, start: int) -> int:
        begin = start + (self.count(start) - 1) * self._stride
        return self.after(begin) - begin

    @property
    def _stride(self) -> int:
        return self.batch_size * self.world_size

    def _share(self, batch: Tensor) -> Tensor:
        share = batch[self.rank :: self.world_size]
        return share if len(share) else batch[self.rank % len(batch)].unsqueeze(0)
