"""The ranks of a job, and small messages between them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

HEADER_BYTES = 8  # the length of a message
SHORT_BYTES = 1016  # a longer message takes a second collective


@dataclass(frozen=True)
class World:
    """The number of ranks of a job, and the rank of this process.

    Every method is a collective: all ranks must call it.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0, which writes files."""
        return self.rank == 0

    def gather(self, message: bytes) -> list[bytes]:
        """Return the messages of all ranks; in one collective if all are short."""
        if self.size == 1:
            return [message]
        header = len(message).to_bytes(HEADER_BYTES, "big")
        heads = self._gather(header + message[:SHORT_BYTES], HEADER_BYTES + SHORT_BYTES)
        lengths = [int.from_bytes(head[:HEADER_BYTES], "big") for head in heads]
        if max(lengths) <= SHORT_BYTES:
            bodies = [head[HEADER_BYTES:] for head in heads]
        else:
            bodies = self._gather(message, max(lengths))
        return [body[:length] for body, length in zip(bodies, lengths, strict=True)]

    def gather_text(self, text: str) -> list[str]:
        """Return the texts of all ranks."""
        return [message.decode() for message in self.gather(text.encode())]

    def broadcast_str(self, text: str) -> str:
        """Return rank 0's text on all ranks; the argument of the other ranks is ignored."""
        return self.gather_text(text if self.is_main else "")[0]

    def sum(self, values: list[float]) -> list[float]:
        """Return the sums over all ranks, in double precision."""
        if self.size == 1:
            return values
        total = torch.tensor(values, dtype=torch.float64, device=_device())
        dist.all_reduce(total)
        return [float(value) for value in total.tolist()]

    def gather_numbers(self, number: Tensor) -> Tensor:
        """Return a number of all ranks as a tensor, without waiting for a GPU."""
        own = number.detach().reshape(1)
        if self.size == 1:
            return own
        own = own.to(_device())
        numbers = own.new_empty(self.size)
        dist.all_gather_into_tensor(numbers, own)
        return numbers

    def barrier(self) -> None:
        """Return when every rank has called this."""
        self.gather(b"")

    def broadcast_buffers(self, buffers: Iterable[Tensor]) -> None:
        """Copy rank 0's buffers to all ranks."""
        if self.size > 1:
            for buffer in buffers:
                dist.broadcast(buffer, 0)

    def _gather(self, message: bytes, length: int) -> list[bytes]:
        padded = bytearray(message.ljust(length, b"\0"))
        mine = torch.frombuffer(padded, dtype=torch.uint8).to(_device())
        parts = [torch.empty_like(mine) for _ in range(self.size)]
        dist.all_gather(parts, mine)
        return [bytes(part.cpu().numpy()) for part in parts]


def current_world() -> World:
    """Return the world of this process; a single rank without `torch.distributed`."""
    if dist.is_available() and dist.is_initialized():
        return World(dist.get_rank(), dist.get_world_size(), int(os.environ.get("LOCAL_RANK", "0")))
    return World()


def _device() -> str:
    """Return the device of messages: a group for NCCL alone takes no CPU tensors."""
    return "cuda" if dist.get_backend() == "nccl" else "cpu"
